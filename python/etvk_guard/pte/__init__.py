# SPDX-License-Identifier: Apache-2.0
"""Reading, checking and repairing `.pte` files: the Python face of the C++ core.

>>> from etvk_guard import pte
>>> program = pte.open_program("model.pte")                    # doctest: +SKIP
>>> [op.name for op in program.methods[0].delegates[0].graph.ops]  # doctest: +SKIP

Safe to use from several threads; the long calls run without the interpreter's lock.
"""

from __future__ import annotations

from etvk_guard.pte._check import DelegateSummary, Finding, Report, check
from etvk_guard.pte._errors import EtvkGuardError, Where
from etvk_guard.pte._planner import NormPlan, OperandSteps, TensorDesc, plan_norm
from etvk_guard.pte._program import (
    Constant,
    Delegate,
    Graph,
    Instruction,
    Method,
    Op,
    PlanTensor,
    PlanValue,
    Program,
    Value,
    VkTensor,
    open_program,
)
from etvk_guard.pte._remote import RemoteFile, find_programs, is_url
from etvk_guard.pte._repair import Extent, Overlay, RepairResult, repair
from etvk_guard.pte._sources import RandomAccess, Source

__all__ = [
    "Constant",
    "Delegate",
    "DelegateSummary",
    "EtvkGuardError",
    "Extent",
    "Finding",
    "Graph",
    "Instruction",
    "Method",
    "NormPlan",
    "Op",
    "OperandSteps",
    "Overlay",
    "PlanTensor",
    "PlanValue",
    "Program",
    "RandomAccess",
    "RemoteFile",
    "RepairResult",
    "Report",
    "Source",
    "TensorDesc",
    "Value",
    "VkTensor",
    "Where",
    "check",
    "find_programs",
    "is_url",
    "open_program",
    "plan_norm",
    "repair",
]
