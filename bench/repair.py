# SPDX-License-Identifier: Apache-2.0
"""What `repair` costs against `cp`: a 2 GB file with 8 faulty norms, in turn, in the same folder.

    python bench/repair.py [FOLDER] [--json]

Each figure is the median of 5 runs of a whole process; memory is what `repair` adds to the peak of
its process, which is what it is after the import.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import files

RUNS = 5
SIZE = 2 << 30


FIX = """
import sys, etvk_guard
def peak():  # of this program alone: VmHWM starts anew with each exec
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
before = peak()
etvk_guard.repair(sys.argv[1], sys.argv[2])
print(before, peak())
"""


def timed(command: list[str], made: Path) -> tuple[float, str]:
    """Wall seconds and the output of one run, which must make `made`."""
    made.unlink(missing_ok=True)
    os.sync()
    start = time.perf_counter()
    child = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    wall = time.perf_counter() - start
    if not made.exists():
        raise RuntimeError(f"{command[0]} made no file")
    return wall, child.stdout


def main() -> None:
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    with tempfile.TemporaryDirectory(dir=arguments[0] if arguments else None) as folder:
        source, made = Path(folder) / "in.pte", Path(folder) / "out.pte"
        files.write(source, 8, SIZE, sparse=False)
        # cp with an fsync, since repair does not return before its output is on the disk
        copy = ["sh", "-c", 'cp --reflink=never "$0" "$1" && sync "$1"', str(source), str(made)]
        fix = [sys.executable, "-c", FIX, str(source), str(made)]
        copies, repairs, memory = [], [], []
        for _ in range(RUNS):
            copies.append(timed(copy, made)[0])
            wall, output = timed(fix, made)
            repairs.append(wall)
            memory.append([int(kilobytes) / 1e3 for kilobytes in output.split()])
    result = {
        "cp_s": statistics.median(copies),
        "repair_s": statistics.median(repairs),
        "ratio": statistics.median(repairs) / statistics.median(copies),
        "import_peak_mb": max(before for before, _ in memory),
        "repair_peak_mb": max(after for _, after in memory),
    }
    if "--json" in sys.argv[1:]:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:>16}: {value:.2f}")


if __name__ == "__main__":
    main()
