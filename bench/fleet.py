# SPDX-License-Identifier: Apache-2.0
"""Runs docs/examples/audit_ray.py on a local Ray against a web server on this machine.

    python bench/fleet.py [--programs 1000]

Half of the programs are faulty, one is no program. Exits with 1 if a report is missing or wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))

import files
from ranged_server import serve

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "audit_ray.py"
FAULTS = 2


def main() -> int:
    """Audit, and hold the result against what was served."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder, out = Path(made), Path(made) / "findings.jsonl"
        files.write(folder / "sound.pte", 0, 1 << 20, sparse=True, multiplies=30)
        files.write(folder / "faulty.pte", FAULTS, 1 << 20, sparse=True, multiplies=30)
        (folder / "page.pte").write_text("<html>no program</html>" * 10)
        with serve(folder) as sent:
            urls = [f"{sent.url}/page.pte"]
            for index in range(1, options.programs):
                urls.append(f"{sent.url}/{'faulty' if index % 2 else 'sound'}.pte?{index}")
            command = [sys.executable, str(EXAMPLE), *urls, "--out", str(out), "--batch", "50"]
            start = time.monotonic()
            code = subprocess.run(command, check=False).returncode
            seconds = time.monotonic() - start
            again = subprocess.run(command, check=False).returncode
            bodies = len(sent.bodies)
        rows = {row["file"]: row for row in map(json.loads, out.read_text().splitlines())}
        lines = len(out.read_text().splitlines())
    wrong = [url for url in urls if not _as_served(url, rows.get(url))]
    print(f"{len(rows)} programs in {seconds:.1f} s with Ray's start, {bodies} ranges fetched")
    expected = (code, again, lines) == (2, 2, options.programs)
    return int(bool(wrong) or not expected)


def _as_served(url: str, row: dict[str, object] | None) -> bool:
    if row is None:
        return False
    if "page" in url:
        return "EG004" in str(row["error"])
    findings = row["findings"]
    count = FAULTS if "faulty" in url else 0
    return isinstance(findings, list) and len(findings) == count and row["error"] is None


if __name__ == "__main__":
    sys.exit(main())
