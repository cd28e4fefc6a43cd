# SPDX-License-Identifier: Apache-2.0
"""What differs between releases of ExecuTorch, and how its Vulkan backend is reached.

Stock's own `VulkanPartitioner.partition` and `VulkanBackend.preprocess` do the work, of whatever
release is installed. They are run with a few of the names that they look up bound to other objects,
for that call alone: nothing in ExecuTorch's modules is changed by it. Releases 1.3.1, 1.4.1 and
1.5.1 look up the same names; one that does not is refused by `rebind`, with the name it lacks.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import executorch.backends.vulkan.patterns as vk_patterns
from executorch.backends.vulkan import vulkan_preprocess
from executorch.backends.vulkan._passes.fuse_patterns import FusePatternsPass
from executorch.backends.vulkan.op_registry import vulkan_supported_ops
from executorch.backends.vulkan.partitioner import vulkan_partitioner
from executorch.backends.vulkan.partitioner.vulkan_partitioner import (
    VulkanPartitioner,
    VulkanSupportedOperators,
)
from executorch.backends.vulkan.utils import (
    io_dtypes_are_supported,
    node_comes_from_any_nn_module_in_set,
)
from executorch.backends.vulkan.vulkan_preprocess import VulkanBackend
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, PartitionResult

__all__ = [
    "CompileSpec",
    "DelegationSpec",
    "GuardedFusePatterns",
    "LoweringError",
    "PartitionResult",
    "VulkanBackend",
    "VulkanPartitioner",
    "VulkanSupportedOperators",
    "executorch_version",
    "from_module",
    "io_dtypes_are_supported",
    "original",
    "patterns_without_norms",
    "rebind",
    "vulkan_partitioner",
    "vulkan_preprocess",
    "vulkan_supported_ops",
]

from_module = node_comes_from_any_nn_module_in_set

_NORM_PATTERNS = frozenset({"rms_norm"})
"""Stock's patterns that fold a norm with whatever multiplies it."""


class LoweringError(RuntimeError):
    """A program cannot be lowered so that a stock runtime runs it, or not with this release."""


def executorch_version() -> str:
    """The installed release, such as "1.5.1"; "unknown" for a build that carries no metadata."""
    try:
        return version("executorch")
    except PackageNotFoundError:
        return "unknown"


def original(function: Callable[..., Any]) -> types.FunctionType:
    """The function behind a method, and behind the wrapper that `guard()` puts around it."""
    function = getattr(function, "__func__", function)
    return cast("types.FunctionType", getattr(function, "__wrapped__", function))


def rebind(function: Callable[..., Any], names: Mapping[str, object]) -> Callable[..., Any]:
    """A copy of `function` for which the global names in `names` mean other objects.

    Raises LoweringError if the function looks up none of one of the names.
    """
    source = original(function)
    missing = [name for name in names if name not in source.__code__.co_names]
    if missing:
        raise LoweringError(
            f"executorch {executorch_version()}: {source.__qualname__} does not use "
            f"{', '.join(missing)}, so etvk-guard cannot guard it; releases 1.3 to 1.5 are known"
        )
    scope = {**source.__globals__, **names}
    bound = types.FunctionType(
        source.__code__, scope, source.__name__, source.__defaults__, source.__closure__
    )
    bound.__kwdefaults__ = source.__kwdefaults__
    return bound


def patterns_without_norms() -> types.SimpleNamespace:
    """Stock's pattern module, as it is now, without the patterns that fold norms."""
    kept = {
        name: _cached(entry)
        for name, entry in vk_patterns.fusable_patterns.items()
        if name not in _NORM_PATTERNS
    }
    names = {"fusable_patterns": kept}
    find = rebind(vk_patterns.all_fusable_graph_patterns, names)
    return types.SimpleNamespace(
        **{k: v for k, v in vars(vk_patterns).items() if not k.startswith("__")}
        | {
            "fusable_patterns": kept,
            "all_fusable_graph_patterns": find,
            "get_all_fusable_subgraphs": rebind(
                vk_patterns.get_all_fusable_subgraphs,
                {**names, "all_fusable_graph_patterns": find},
            ),
            "replace_all_fusable_subgraphs": rebind(
                vk_patterns.replace_all_fusable_subgraphs, names
            ),
        }
    )


def _cached(entry: Any) -> Any:
    """A pattern entry that exports its pattern graphs once, not each time they are matched."""
    if entry.get_graphs_fn is None:
        return entry
    again = copy.copy(entry)
    again.get_graphs_fn = functools.partial(_pattern_graphs, entry.get_graphs_fn)
    return again


@functools.cache
def _pattern_graphs(make: Callable[[], Any]) -> Any:
    return make()


class GuardedFusePatterns(FusePatternsPass):  # type: ignore[misc]
    """Stock's pass that fuses patterns, norms excepted."""

    def call(self, graph_module: Any) -> Any:
        """Run stock's pass over one graph."""
        run = rebind(FusePatternsPass.call, {"vk_patterns": patterns_without_norms()})
        return run(self, graph_module)
