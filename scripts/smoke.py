# SPDX-License-Identifier: Apache-2.0
"""What an installed wheel must do without a compiler and torch: find, repair, find nothing.

python scripts/smoke.py FOLDER_OF_TEST_DATA
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """0 if it does."""
    faulty = next(Path(sys.argv[1]).glob("releases/*/gated.pte"))
    command = [sys.executable, "-m", "etvk_guard"]
    with tempfile.TemporaryDirectory() as folder:
        repaired = Path(folder) / "repaired.pte"
        steps = [
            (["check", str(faulty)], 1),
            (["repair", str(faulty), "-o", str(repaired)], 0),
            (["check", str(repaired)], 0),
            (["show", str(repaired)], 0),
        ]
        for arguments, expected in steps:
            code = subprocess.run([*command, *arguments], stdout=subprocess.DEVNULL).returncode
            if code != expected:
                print(f"etvk-guard {' '.join(arguments)}: exit code {code}, not {expected}")
                return 1
    print("etvk-guard works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
