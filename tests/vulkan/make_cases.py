# SPDX-License-Identifier: Apache-2.0
"""Writes the table of models as cases for runner.cpp, which runs them where there is no Python.

    python tests/vulkan/make_cases.py FOLDER [--repaired]

Programs are lowered by the stock partitioner; expected values are eager torch's. They are those
whose faults, if any, are of norms: cases for the op builder. With --repaired they are those that
repair makes whole, repaired: cases for a stock delegate. Of neither kind are programs with methods
besides "forward".
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))

from etvk_guard import pte
from exporting import stock_file
from models import MODELS, Model

DTYPES = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.int64: "int64",
    torch.int32: "int32",
}


def write_value(role: str, tensor: torch.Tensor, path: Path, listing: TextIO) -> None:
    path.write_bytes(tensor.detach().contiguous().numpy().tobytes())
    sizes = "x".join(map(str, tensor.shape)) or "-"
    listing.write(f"{role} {DTYPES[tensor.dtype]} {sizes} {path.name}\n")


def write_case(name: str, model: Model, folder: Path, repaired: bool, listing: TextIO) -> None:
    path = stock_file(name, folder)
    if repaired:
        pte.repair(path, folder / f"{name}.repaired.pte")
        path = folder / f"{name}.repaired.pte"
    listing.write(f"case {name} {path.name} {model.tolerance}\n")
    inputs = model.inputs()
    with torch.no_grad():
        result = model.make().eval()(*inputs)
    for index, tensor in enumerate(inputs):
        write_value("input", tensor, folder / f"{name}.in{index}", listing)
    for index, tensor in enumerate(result if isinstance(result, tuple | list) else (result,)):
        write_value("output", tensor, folder / f"{name}.out{index}", listing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repaired", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with open(options.folder / "cases.txt", "w") as listing:
        for name, model in MODELS.items():
            norms_only = all(code.startswith("EG10") for code in model.codes)
            whole = not model.codes or model.repaired is not None
            if not model.methods and (whole if options.repaired else norms_only):
                write_case(name, model, options.folder, options.repaired, listing)


if __name__ == "__main__":
    main()
