# SPDX-License-Identifier: Apache-2.0
"""Checks a registry of programs on a Ray cluster, or on this machine.

    python audit_ray.py s3://models/ gs://other/*.pte --out findings.jsonl [--batch 256]

Writes a line of JSON a program, as `etvk-guard check --json` prints it. Programs that are in the
file already are left out: a run that was stopped is taken up again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from etvk_guard import EtvkGuardError, check, pte

THREADS = 32  # of a task: they wait for answers most of the time


def audit_one(url: str) -> dict[str, Any]:
    """The report of one program, or why there is none."""
    try:
        return {**check(url).to_json(), "file": url}
    except EtvkGuardError as error:
        return {"file": url, "error": str(error), "findings": [], "delegates": []}


def audit(urls: list[str]) -> list[dict[str, Any]]:
    """The reports of a batch: what one task does."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(audit_one, urls))


def batches(urls: list[str], done: set[str], size: int) -> Iterator[list[str]]:
    """What is still to do, some at a time."""
    left = [url for url in urls if url not in done]
    return (left[start : start + size] for start in range(0, len(left), size))


def finished(out: Path) -> set[str]:
    """The programs that `out` names; a line that was cut off does not count."""
    if not out.exists():
        return set()
    lines = out.read_text().splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    out.write_text("".join(whole))
    return {json.loads(line)["file"] for line in whole}


def main() -> int:
    """Audit what is named; 1 if there are findings, 2 if a program could not be read."""
    import ray

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    urls = [found for url in options.urls for found in pte.find_programs(url)]
    todo = batches(urls, finished(options.out), options.batch)

    ray.init(include_dashboard=False, log_to_driver=False)
    task = ray.remote(audit)
    most = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))  # batches in flight
    running: list[Any] = []
    with options.out.open("a") as out:
        for batch in todo:
            running.append(task.remote(batch))
            if len(running) >= most:
                running = _take(running, out)
        while running:
            running = _take(running, out)
    ray.shutdown()
    rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    print(f"{len(rows)} programs, {sum(bool(row['findings']) for row in rows)} with findings")
    return 2 if any(row["error"] for row in rows) else int(any(row["findings"] for row in rows))


def _take(running: list[Any], out: Any) -> list[Any]:
    """Write down a batch that is ready, and give back those that are not."""
    import ray

    ready, rest = ray.wait(running)
    for report in ray.get(ready[0]):
        out.write(json.dumps(report) + "\n")
    out.flush()
    return list(rest)


if __name__ == "__main__":
    sys.exit(main())
