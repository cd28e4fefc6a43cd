# SPDX-License-Identifier: Apache-2.0
"""Writes the rows of lowered.py as cases for runner.cpp, which runs them where there is no Python.

    python tests/vulkan/make_lowered_cases.py FOLDER

Programs are lowered under guard, for a stock delegate: run them with `--guard off`. Expected values
are eager torch's. Of programs with several methods, "forward" is taken.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lowered import ROWS, lowered_file
from make_cases import write_value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "cases.txt", "w") as listing:
        for name, row in ROWS.items():
            program = lowered_file(name, folder)
            listing.write(f"case {name} {program.name} {row.tolerance}\n")
            for index, tensor in enumerate(row.inputs()):
                write_value("input", tensor, folder / f"{name}.in{index}", listing)
            for index, tensor in enumerate(row.expected("forward")):
                write_value("output", tensor, folder / f"{name}.out{index}", listing)


if __name__ == "__main__":
    main()
