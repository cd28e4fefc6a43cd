# SPDX-License-Identifier: Apache-2.0
"""What the guarded loader costs on a clean 500 MB model.

    python bench/loader.py [--megabytes 500] [--ops 1000] [--runs 7]

The model is one Vulkan delegate with that many ops, and its weights as named data. It is loaded
through ExecuTorch's own file and mmap loaders, every page of the weights read, with the file in the
page cache: on a cold one the loading takes longer, and the check the same few reads. Exit code 1 if
the check takes 1% of the load time or more, or keeps 16 KB of heap. Memory while it checks is what
becomes resident, this library's code included.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))

import cxx_package  # noqa: E402


def measure(bench: Path, model: Path, loader: str, runs: int) -> dict[str, float]:
    """Median times in ms and largest memory in bytes; the loads with and without by turns."""
    made: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    for _ in range(runs):
        for guarded, kept in made.items():
            options = [] if guarded else ["--plain"]
            command = [str(bench), str(model), loader, *options]
            kept.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    sums = {row["sum"] for rows in made.values() for row in rows}
    if len(sums) != 1:
        raise RuntimeError(f"not the same bytes: {sums}")
    return {
        "check": statistics.median(row["check_ms"] for row in made[True]),
        "guarded": statistics.median(row["load_ms"] for row in made[True]),
        "plain": statistics.median(row["load_ms"] for row in made[False]),
        "kept": max(row["kept"] for row in made[True]),
        "peak": max(row["peak"] for row in made[True]),
    }


def main() -> int:
    """Make the model, build the bench, run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--ops", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    package = cxx_package.build(ROOT / "build/cxx-package")
    build = package.example.parent
    subprocess.run(["cmake", "--build", str(build), "--target", "loader_bench"], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "clean.pte"
        files.write(model, 0, options.megabytes * 1_000_000, sparse=False, multiplies=options.ops)
        flatbuffers = model.stat().st_size - options.megabytes * 1_000_000
        print(f"{model.stat().st_size / 1e6:.0f} MB, {flatbuffers / 1e3:.0f} KB of it flatbuffers")
        good = True
        for loader in ("file", "mmap"):
            row = measure(build / "loader_bench", model, loader, options.runs)
            share = row["check"] / row["plain"]
            print(
                f"{loader}: check {row['check']:.2f} ms, load {row['plain']:.0f} ms "
                f"({row['guarded']:.0f} ms through the guarded loader): {share:.2%}; memory: "
                f"{row['peak'] / 1e3:.0f} KB while it checks, {row['kept']:.0f} bytes of heap after"
            )
            good = good and share < 0.01 and row["kept"] < 16_384
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
