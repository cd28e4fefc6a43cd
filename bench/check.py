# SPDX-License-Identifier: Apache-2.0
"""What `check` costs: a 4 GB file with 1,000 faulty norms, and graphs of up to 100,000 ops.

The large graphs come with 8 faulty norms, as a model may have, and with nothing but faulty norms,
where most of the time goes into one Python object a finding.

    python bench/check.py [--json]

Time is the best and the median of 20 calls in one process; resident memory is what the first call
added.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import etvk_guard
import files

SIZES = (1_000, 10_000, 30_000, 100_000)
CASES = [
    (1_000, 1_000, 4 << 30),
    *((8, size, 1 << 20) for size in SIZES),
    *((size, size, 1 << 20) for size in SIZES),
]  # faulty norms, ops, bytes of weights
CALLS = 20


def resident() -> int:
    """This process's resident memory, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def measure(path: Path) -> dict[str, float]:
    before = resident()
    report = etvk_guard.check(path)
    added = resident() - before
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        etvk_guard.check(path)
        times.append(time.perf_counter() - start)
    return {
        "findings": len(report.findings),
        "best_ms": min(times) * 1e3,
        "median_ms": statistics.median(times) * 1e3,
        "resident_mb": added / 1e6,
    }


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pte"
        for norms, ops, weights in CASES:
            files.write(path, norms, weights, sparse=True, multiplies=ops - norms)
            rows.append({"ops": ops, "file_bytes": path.stat().st_size, **measure(path)})
    if "--json" in sys.argv[1:]:
        print(json.dumps(rows))
        return
    print("     ops  findings   file MB   best ms median ms  us per op  resident MB")
    for row in rows:
        print(
            f"{row['ops']:>8} {row['findings']:>9} {row['file_bytes'] / 1e6:>9.0f}"
            f" {row['best_ms']:>9.2f} {row['median_ms']:>9.2f}"
            f" {row['best_ms'] / row['ops'] * 1e3:>10.2f} {row['resident_mb']:>12.1f}"
        )


if __name__ == "__main__":
    main()
