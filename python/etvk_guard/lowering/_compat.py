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
    is_dequant_node,
    is_quant_node,
    node_comes_from_any_nn_module_in_set,
)
from executorch.backends.vulkan.vulkan_preprocess import VulkanBackend
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, PartitionResult
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from etvk_guard.lowering.constants import Constants
from etvk_guard.lowering.fusions import fusion_fits, own_constants, symmetric
from etvk_guard.lowering.rotary import rotary_fits

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
    "is_dequant_node",
    "is_folded_away",
    "minor_release",
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


def is_folded_away(node: Node) -> bool:
    """Whether stock's preprocessing drops a call, one of a quantize and its dequantize."""
    if is_dequant_node(node):
        source = node.args[0]
        return isinstance(source, Node) and bool(is_quant_node(source))
    return bool(is_quant_node(node)) and all(is_dequant_node(user) for user in node.users)


def executorch_version() -> str:
    """The installed release, such as "1.5.1"; "unknown" for a build that carries no metadata."""
    try:
        return version("executorch")
    except PackageNotFoundError:
        return "unknown"


def minor_release() -> str:
    """The installed release as the contract names it: "1.5" for 1.5.1."""
    return ".".join(executorch_version().split(".")[:2])


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


def patterns_without_norms(program: ExportedProgram) -> types.SimpleNamespace:
    """Stock's pattern module, as it is now, for one program.

    Without the patterns that fold norms, nor matches that stock's ops do not compute.
    """
    constants = Constants(program)
    kept = {
        name: _cached(name, entry, constants)
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
            "get_all_fusable_subgraphs": _fitting(
                rebind(
                    vk_patterns.get_all_fusable_subgraphs,
                    {**names, "all_fusable_graph_patterns": find},
                )
            ),
            "replace_all_fusable_subgraphs": rebind(
                vk_patterns.replace_all_fusable_subgraphs, names
            ),
        }
    )


def _cached(name: str, entry: Any, constants: Constants) -> Any:
    """A pattern entry that exports its pattern graphs once, and finds only what fits its op."""
    again = copy.copy(entry)
    if entry.get_graphs_fn is not None:
        again.get_graphs_fn = functools.partial(_pattern_graphs, entry.get_graphs_fn)
        again.create_replacement_fn = _where_fitting(entry.create_replacement_fn)
    if entry.detector_fn is not None:
        again.detector_fn = functools.partial(_detect, name, entry.detector_fn, constants)
        again.create_replacement_fn = functools.partial(
            _replace, entry.create_replacement_fn, constants
        )
    return again


def _fitting(find: Callable[..., Any]) -> Callable[..., Any]:
    """Stock's search for patterns, without the matches that its ops do not compute."""

    def search(graph_module: Any) -> list[Any]:
        return [match for match in find(graph_module) if rotary_fits(match)]

    return search


def _where_fitting(replace: Any) -> Any:
    """Stock's replacement of a match, where its op computes it."""

    def replace_fitting(program: Any, graph_module: Any, match: Any) -> None:
        if rotary_fits(match):
            replace(program, graph_module, match)

    return replace and replace_fitting


def _detect(name: str, detector: Callable[[Node], Any], constants: Constants, node: Node) -> Any:
    """A match of stock's detector that fits. It may assert what it asks for: else no match."""
    try:
        match = detector(node)
    except (AssertionError, IndexError, GuardOnDataDependentSymNode):
        return None
    return match if match is not None and fusion_fits(name, match, constants.leaf) else None


def _replace(
    replace: Any, constants: Constants, program: ExportedProgram, graph_module: Any, match: Any
) -> None:
    """Stock's replacement of a match that fits, where the values of its constants do too."""
    if symmetric(match, constants):
        own_constants(match, constants, program)
        replace(program, graph_module, match)


@functools.cache
def _pattern_graphs(make: Callable[[], Any]) -> Any:
    return make()


Afterwards = Callable[[ExportedProgram], int]
"""What is done to a program after stock's patterns were fused; says how much was changed."""


class GuardedFusePatterns(FusePatternsPass):  # type: ignore[misc]
    """Stock's pass that fuses patterns, norms excepted, and what is to be done after it."""

    def __init__(self, afterwards: Afterwards) -> None:
        """Call `afterwards` on the program that was fused."""
        super().__init__()
        self._afterwards = afterwards

    def call(self, graph_module: Any) -> Any:
        """Run stock's pass over one graph."""
        patterns = patterns_without_norms(self._exported_program)
        fuse = patterns.replace_all_fusable_subgraphs

        def replace(program: ExportedProgram, graph_module: Any) -> int:
            count = int(fuse(program, graph_module))
            return count + self._afterwards(program)

        patterns.replace_all_fusable_subgraphs = replace
        run = rebind(FusePatternsPass.call, {"vk_patterns": patterns})
        return run(self, graph_module)
