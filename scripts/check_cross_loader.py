# SPDX-License-Identifier: Apache-2.0
"""Run the guarded loader's example for arm64 on every release's files, against ExecuTorch's wheel.

python scripts/check_cross_loader.py EXAMPLE STAND_IN.so FOLDER_OF_LIBEXECUTORCH

The example says what was repaired, and the stand-in for the delegate keeps the blobs that it is
given. Both are held against what Python finds and repairs.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import etvk_guard
from etvk_guard import pte

DATA = Path(__file__).resolve().parents[1] / "tests/data/releases"
SYSROOT = "/usr/aarch64-linux-gnu"
BYTES = {5: 2, 6: 4}  # of ScalarType half and float


def inputs(path: Path, folder: Path) -> list[str]:
    """Zeros for each input of `forward`, as options of the example."""
    method = etvk_guard.open_program(path).method("forward")
    options = []
    for number, index in enumerate(method.inputs):
        tensor = method.values[index].value
        assert isinstance(tensor, pte.PlanTensor)
        file = folder / f"input{number}"
        file.write_bytes(bytes(math.prod(tensor.sizes) * BYTES[tensor.dtype]))
        options += ["--input", str(file)]
    return options


def check(path: Path, example: str, stand_in: str, libraries: str) -> int:
    """One program; returns how many repairs there were."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "ETVK_GUARD_BACKEND": stand_in,
            "ETVK_GUARD_STAND_IN": name,
            "QEMU_SET_ENV": f"LD_LIBRARY_PATH={libraries}",
        }
        options = [str(path), *inputs(path, folder), "--output", str(folder / "output")]
        command = ["qemu-aarch64", "-L", SYSROOT, example, *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (path, done.stderr)
        fixed = etvk_guard.repair(path)
        expected = [
            f"repaired: method {found.method}, op {found.op_index} ({found.op}): {found.message}"
            for found in fixed.repaired
        ]
        assert done.stdout.splitlines() == expected, (path, done.stdout)
        method = etvk_guard.open_program(fixed.data).method("forward")
        for index, delegate in enumerate(method.delegates):
            blob = fixed.overlay.read(delegate.offset, delegate.size)
            assert (folder / f"blob-{index}").read_bytes() == blob, (path, index)
    return len(expected)


def main(argv: list[str]) -> int:
    """Check every file; returns the exit status."""
    if len(argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    example, stand_in, libraries = (str(Path(item).resolve()) for item in argv[1:])
    files = sorted(DATA.glob("*/*.pte"))
    repairs = sum(check(path, example, stand_in, libraries) for path in files)
    assert len(files) >= 30
    assert repairs >= 24
    print(f"arm64, guarded loader: {len(files)} programs loaded and run, {repairs} repairs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
