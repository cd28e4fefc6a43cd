# SPDX-License-Identifier: Apache-2.0
"""Every case of the lowering tests and every row of the table of models, lowered under guard.

And what the tests of such programs share: a case lowered with a partitioner, eager's results of it.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.metadata
import logging
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
sys.path.insert(0, str(Path(__file__).parent.parent / "python" / "lowering"))

from fusion_cases import FUSION_CASES
from limit_cases import LIMIT_CASES
from lowering_cases import Case
from norm_cases import NORM_CASES, WRITTEN
from op_cases import OP_CASES

import exporting
from models import MODELS, Model
from patterns import patterns_made_once

TABLES = Path(__file__).parent.parent / "python"
Inputs = tuple[torch.Tensor, ...]


@dataclass
class Row:
    """A program to lower, and what it must give.

    Attributes:
        lower: makes the `.pte`.
        inputs: of each method.
        expected: eager's outputs of one method.
        methods: the names of its methods.
        tolerance: relative to the largest value of eager's result.
    """

    lower: Callable[[], bytes]
    inputs: Callable[[], Inputs]
    expected: Callable[[str], list[torch.Tensor]]
    tolerance: float
    methods: list[str] = field(default_factory=lambda: ["forward"])


def _listed(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def lower_case(case: Case, partitioner: Any) -> bytes:
    """The case's `.pte`."""
    from executorch.exir import to_edge_transform_and_lower

    module, inputs = case.make()
    program = torch.export.export(module.eval(), inputs, dynamic_shapes=case.dynamic)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    return bytes(edge.to_executorch().buffer)


def eager(case: Case) -> list[torch.Tensor]:
    """The case's results in eager torch."""
    module, inputs = case.make()
    with torch.no_grad():
        return _listed(copy.deepcopy(module).eval()(*inputs))


def _lower_guarded(case: Case) -> bytes:
    from etvk_guard.lowering import GuardedVulkanPartitioner

    return lower_case(case, GuardedVulkanPartitioner())


def _lower_model(model: Model) -> bytes:
    from etvk_guard.lowering import guard

    with guard():
        return exporting.lower_stock(model)


def _case(case: Case) -> Row:
    return Row(
        lambda: _lower_guarded(case),
        lambda: tuple(case.make()[1]),
        lambda method: eager(case),
        case.tolerance,
    )


def _model(model: Model) -> Row:
    def expected(method: str) -> list[torch.Tensor]:
        make = model.make if method == "forward" else model.methods[method]
        with torch.no_grad():
            return _listed(make().eval()(*model.inputs()))

    methods = ["forward", *model.methods]
    return Row(lambda: _lower_model(model), model.inputs, expected, model.tolerance, methods)


CASES = (*NORM_CASES, WRITTEN, *OP_CASES, *FUSION_CASES, *LIMIT_CASES)
ROWS: dict[str, Row] = {case.name: _case(case) for case in CASES}
ROWS |= {f"model_{name}": _model(model) for name, model in MODELS.items()}


def key() -> str:
    """Names what lowered programs depend on: the tables, the lowering, torch and executorch."""
    import etvk_guard.lowering

    sources = [*TABLES.glob("*.py"), *(TABLES / "lowering").glob("*.py"), Path(__file__)]
    sources += Path(etvk_guard.lowering.__file__).parent.rglob("*.py")
    parts = [path.read_bytes() for path in sorted(sources)]
    parts += [importlib.metadata.version(name).encode() for name in ("torch", "executorch")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def lowered_file(name: str, folder: Path) -> Path:
    """The row's `.pte`, made once in `folder`."""
    return made_once(folder / f"{name}.pte", ROWS[name].lower)


def made_once(path: Path, lower: Callable[[], bytes]) -> Path:
    """`path`, with what `lower` gives, quietly, where there was no such file."""
    if not path.exists():
        level = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            with warnings.catch_warnings(), patterns_made_once():
                warnings.simplefilter("ignore")
                data = lower()
        finally:
            logging.disable(level)
        made = path.with_suffix(".tmp")
        made.write_bytes(data)
        os.replace(made, path)
    return path
