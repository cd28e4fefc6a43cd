# SPDX-License-Identifier: Apache-2.0
"""Lowering for ET-VK that keeps the prepack contract.

>>> from etvk_guard import GuardedVulkanPartitioner
>>> partitioner = GuardedVulkanPartitioner()
>>> edge = to_edge_transform_and_lower(program, partitioner=[partitioner])   # doctest: +SKIP
>>> print(partitioner.report)                                                # doctest: +SKIP

`guard()` and `install()` do the same to code that makes its own `VulkanPartitioner`. Needs torch
and executorch.
"""

from __future__ import annotations

from etvk_guard.lowering._compat import LoweringError
from etvk_guard.lowering.file import lower_file
from etvk_guard.lowering.guard import guard, install, installed, uninstall
from etvk_guard.lowering.partitioner import GuardedVulkanPartitioner
from etvk_guard.lowering.report import Entry, LoweringReport
from etvk_guard.lowering.site import Decision, Runtime

__all__ = [
    "Decision",
    "Entry",
    "GuardedVulkanPartitioner",
    "LoweringError",
    "LoweringReport",
    "Runtime",
    "guard",
    "install",
    "installed",
    "lower_file",
    "uninstall",
]
