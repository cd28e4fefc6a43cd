# SPDX-License-Identifier: Apache-2.0
"""Write small files with the stock partitioner of the executorch that is installed.

    pip install executorch==1.3.1   # or 1.4.1, 1.5.1
    python tests/data/releases/make.py [NAME...]

writes `tests/data/releases/1.3.1/NAME.pte` for rows of `tests/python/models.py`, those named below
if none is given.
The files are kept: every later version of etvk-guard must read them.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import exporting  # noqa: E402
from models import MODELS  # noqa: E402

NAMES = (
    "leaf",
    "one_plus",
    "runtime_b1d",
    "gated",
    "constant_rows",
    "half_one_plus",
    "layer_norm_bare",
    "layer_norm_runtime",
    "methods",
    "split",
)


def main() -> None:
    """Write the files of the installed release."""
    release = importlib.metadata.version("executorch").partition("+")[0]
    folder = HERE / release
    folder.mkdir(exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        path = folder / f"{name}.pte"
        path.write_bytes(exporting.lower_stock(MODELS[name]))
        print(path.relative_to(HERE), path.stat().st_size)


if __name__ == "__main__":
    main()
