# SPDX-License-Identifier: Apache-2.0
"""What `repair` costs against `cp`: a 2 GB file with 8 faulty norms, in turn, in the same folder.

    python bench/repair.py [FOLDER] [--json]

Each figure is the median of 5 runs of a whole process; peak memory is the child's.
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


def timed(command: list[str], made: Path) -> tuple[float, int]:
    """Wall seconds and peak resident bytes of one run, which must make `made`."""
    made.unlink(missing_ok=True)
    os.sync()
    start = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    if status != 0 or not made.exists():
        raise RuntimeError(f"{command[0]} failed with status {status}")
    return wall, usage.ru_maxrss * 1024


def main() -> None:
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    with tempfile.TemporaryDirectory(dir=arguments[0] if arguments else None) as folder:
        source, made = Path(folder) / "in.pte", Path(folder) / "out.pte"
        files.write(source, 8, SIZE, sparse=False)
        # cp with an fsync, since repair does not return before its output is on the disk
        copy = ["sh", "-c", 'cp --reflink=never "$0" "$1" && sync "$1"', str(source), str(made)]
        code = "import sys, etvk_guard; etvk_guard.repair(sys.argv[1], sys.argv[2])"
        fix = [sys.executable, "-c", code, str(source), str(made)]
        runs: dict[str, list[tuple[float, int]]] = {"cp": [], "repair": []}
        for _ in range(RUNS):
            runs["cp"].append(timed(copy, made))
            runs["repair"].append(timed(fix, made))
    result = {
        name: {
            "median_s": statistics.median(wall for wall, _ in values),
            "peak_mb": max(peak for _, peak in values) / 1e6,
        }
        for name, values in runs.items()
    }
    ratio = result["repair"]["median_s"] / result["cp"]["median_s"]
    if "--json" in sys.argv[1:]:
        print(json.dumps({**result, "ratio": ratio}))
        return
    for name, row in result.items():
        print(f"{name:>8}: {row['median_s']:.2f} s, peak {row['peak_mb']:.0f} MB")
    print(f"repair / cp: {ratio:.2f}")


if __name__ == "__main__":
    main()
