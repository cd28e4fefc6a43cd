# SPDX-License-Identifier: Apache-2.0
"""Guards ExecuTorch's Vulkan delegate (ET-VK) against broken prepack contracts.

>>> import etvk_guard
>>> report = etvk_guard.check("model.pte")               # doctest: +SKIP
>>> etvk_guard.repair("model.pte", "model.fixed.pte")    # doctest: +SKIP

Importing this package imports neither torch nor executorch: `lowering`, `reference` and `runtime`
are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from etvk_guard._version import __version__
from etvk_guard.pte import (
    DelegateSummary,
    EtvkGuardError,
    Finding,
    Program,
    RepairResult,
    Report,
    Where,
    check,
    open_program,
    repair,
)

if TYPE_CHECKING:
    from etvk_guard import lowering, reference, runtime
    from etvk_guard.lowering import GuardedVulkanPartitioner

__all__ = [
    "DelegateSummary",
    "EtvkGuardError",
    "Finding",
    "GuardedVulkanPartitioner",
    "Program",
    "RepairResult",
    "Report",
    "Where",
    "__version__",
    "check",
    "lowering",
    "open_program",
    "reference",
    "repair",
    "runtime",
]

_LAZY_MODULES = frozenset({"lowering", "reference", "runtime"})


def __getattr__(name: str) -> Any:
    """Load the parts that need torch on first use (PEP 562)."""
    if name in _LAZY_MODULES:
        return _load(name)
    if name == "GuardedVulkanPartitioner":
        return _load("lowering").GuardedVulkanPartitioner
    raise AttributeError(f"module 'etvk_guard' has no attribute {name!r}")


def _load(name: str) -> Any:
    try:
        return importlib.import_module(f"etvk_guard.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("torch", "executorch"):
            raise
        message = f"etvk_guard.{name} needs torch and executorch: etvk-guard's extra `lowering`"
        raise ModuleNotFoundError(message, name=error.name) from error
