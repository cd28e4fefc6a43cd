# SPDX-License-Identifier: Apache-2.0
"""The contract, asked of every op: before the partition is made, and of the graph that comes out.

The first audit keeps an op that would break the contract out of the delegate. The second reads the
finished VkGraph, in which every fusion of the installed release has happened, and lets nothing pass
that a stock runtime would abort on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import torch
from torch.fx import Node

from etvk_guard import contract
from etvk_guard.contract.groups import wrong_groups
from etvk_guard.lowering import _compat
from etvk_guard.lowering._compat import LoweringError
from etvk_guard.lowering.constants import Constants
from etvk_guard.lowering.graph import dims, dtype_of, op_name, shape_of

__all__ = ["Breach", "audit_graph", "audit_node"]

# Their shaders take the third dim from the end for the channels.
_OF_IMAGES = (
    "aten.native_group_norm.default",
    "aten._native_batch_norm_legit_no_training.default",
)
_IMAGE_RANK = 4
_REDUCTIONS = (
    "aten.mean.dim",
    "aten.sum.dim_IntList",
    "aten.amax.default",
    "aten.amin.default",
    "aten._softmax.default",
    "aten._log_softmax.default",
    "aten.var.dim",
)


@dataclass(frozen=True)
class Breach:
    """What an op does that the contract forbids.

    Attributes:
        reason: what is wrong, in words.
        arg: the argument that is to blame, by its place; None if it is the op itself.
        name: its name.
        evaluable: the argument is computed from constants, so that evaluating it helps.
    """

    reason: str
    arg: int | None = None
    name: str = ""
    evaluable: bool = False


def audit_node(node: Node, constants: Constants) -> list[Breach]:
    """The breaches of one call of an edge-dialect graph, were it delegated as it is.

    Of calls that stock fuses with others nothing should be asked here.
    """
    name = op_name(node)
    lacking = _lacking(name) if not _compat.is_folded_away(node) else ""
    found = [Breach(lacking)] if lacking else []
    if name in _OF_IMAGES and len(shape_of(node.args[0]) or ()) != _IMAGE_RANK:
        found.append(Breach(f"the input {dims(node.args[0])} is not four-dimensional"))
    found += _symbolic_lists(node, name) + _groups(node, name) + _reduced_channels(node, name)
    found += _constant_operands(node, name, constants)
    for row in contract.rows(name):
        breach = _breach(row, _argument(node, row.arg), node, constants)
        if breach is not None:
            found.append(breach)
    return found


def _groups(node: Node, name: str) -> list[Breach]:
    """Groups of a convolution of images that stock computes wrongly."""
    weight = shape_of(node.args[1]) if name == "aten.convolution.default" else None
    groups = _argument(node, 8)
    if weight is None or not isinstance(groups, int):
        return []
    sizes = [size if isinstance(size, int) else 0 for size in weight]
    reason = wrong_groups(sizes, groups, bool(_argument(node, 6)))
    return [Breach(reason)] if reason else []


def _reduced_channels(node: Node, name: str) -> list[Breach]:
    """A reduction over the channels of several images, which lie behind each other in a texture."""
    shape = shape_of(node.args[0]) if name in _REDUCTIONS else None
    if shape is None or len(shape) != _IMAGE_RANK or shape[0] == 1:
        return []
    reduced = _argument(node, 1)
    reduced = reduced if isinstance(reduced, (list, tuple)) else [reduced]
    if not any(isinstance(dim, int) and dim % _IMAGE_RANK == 1 for dim in reduced):
        return []
    return [Breach(f"it reduces the second dim of {dims(node.args[0])}, of several batches", 1)]


def _constant_operands(node: Node, name: str, constants: Constants) -> list[Breach]:
    """Constants that stock leaves to an op, which takes run-time values in their place.

    Stock has the first operand copied to the GPU (of an embedding the second), and what ops take
    that prepack nothing.
    """
    info, features = contract.op(name), _compat.vulkan_supported_ops.get(node.target)
    if info is None or features is None or not features.supports_prepacking:
        return []
    first = 1 if name == "aten.embedding.default" else 0
    taken = {row.arg for row in info.prepack} | {*info.either, first}
    return [
        Breach(f"{info.args[place]} `{value.name}` {dims(value)} is a constant", place)
        for place, value in enumerate(node.args)
        if isinstance(value, Node) and place not in taken and constants.leaf(value)
    ]


def _symbolic_lists(node: Node, name: str) -> list[Breach]:
    """Lists of numbers that hold a size which only running tells, where stock asks for numbers."""
    info = contract.op(name)
    if info is None:
        return []
    return [
        Breach(f"`{item.name}`, in argument {place}, is a size that only running tells", place)
        for place, values in enumerate(node.args)
        if isinstance(values, (list, tuple)) and place not in info.symbolic
        for item in values
        if isinstance(item, Node) and isinstance(item.meta.get("val"), torch.SymInt)
    ][:1]


@cache
def _lacking(name: str) -> str:
    """Why the runtime of the installed release does not know an op; "" if it does."""
    if name in {op.name for op in contract.missing_ops()}:
        return f"no runtime registers {name}"
    info, release = contract.op(name), _compat.minor_release()
    if info is None or release not in contract.releases() or release in info.releases:
        return ""
    return f"the runtime of {release} does not register {name}"


def _argument(node: Node, index: int) -> Any:
    """An argument by its place in the op's schema."""
    if index < len(node.args):
        return node.args[index]
    schema = getattr(node.target, "_schema", None)
    if schema is None or index >= len(schema.arguments):
        return None
    argument = schema.arguments[index]
    return node.kwargs.get(argument.name, argument.default_value)


def _breach(
    row: contract.PrepackRow, value: Any, node: Node, constants: Constants
) -> Breach | None:
    if value is None:
        return None if row.none_ok else Breach(f"{row.name} is missing", row.arg, row.name)
    if not isinstance(value, Node):
        return None
    if constants.mutable(value) and "mutable" not in row.broken:
        return None
    what = f"{row.name} `{constants.target(value)}` {dims(value)}"
    if not constants.leaf(value):
        if constants.known(value):
            return Breach(f"{what} is computed from constants", row.arg, row.name, evaluable=True)
        culprit = constants.culprit(value)
        return Breach(f"{what} is a run-time value, from {culprit}", row.arg, row.name)
    if row.condition == "row-constant" and not _is_row(value, node):
        return Breach(f"{what} is not one row", row.arg, row.name)
    return None


def _is_row(value: Node, node: Node) -> bool:
    shape, x = shape_of(value), shape_of(node.args[0])
    if not shape or not x or dtype_of(value) is None:
        return False
    return shape[-1] == x[-1] and all(size == 1 for size in shape[:-1])


def audit_graph(graph: Any, guarded_runtime: bool) -> None:
    """Raise LoweringError for the first op of a finished VkGraph that a runtime would abort on.

    Args:
        graph: the `VkGraph` that preprocessing made.
        guarded_runtime: the program is marked as needing this project's op builders, which take a
            run-time weight of a norm.
    """
    for call, reason in _graph_breaches(graph):
        if guarded_runtime and call.name == "et_vk.rms_norm.default":
            continue
        raise LoweringError(
            f"{call.name} would abort while the method loads: {reason}. Keep the op out of the "
            "delegate with operator_blocklist, and please report it: this is a defect of etvk-guard"
        )


def _graph_breaches(graph: Any) -> Iterator[tuple[Any, str]]:
    values = graph.values
    inputs = set(graph.input_ids)
    for call in graph.chain:
        lacking = _lacking(call.name)
        if lacking:
            yield call, lacking
        for row in contract.rows(call.name):
            if row.arg >= len(call.args) - 1 or "abort" not in row.releases.values():
                continue
            reason = _value_breach(row, call.args[row.arg], values, inputs, call.args[0])
            if reason:
                yield call, f"argument {row.arg} ({row.name}) is {reason}"
        info = contract.op(call.name)
        for place, index in enumerate(call.args[:-1]):
            if info and place not in info.symbolic and _is_symbolic(values[index].value, values):
                yield call, f"argument {place} holds a size that only running tells"


def _is_symbolic(value: Any, values: Any) -> bool:
    """Whether a value is a list of numbers, one of them known only while running."""
    if type(value).__name__ != "ValueList":
        return False
    return any(type(values[item].value).__name__ == "SymInt" for item in value.items)


def _value_breach(
    row: contract.PrepackRow, index: int, values: Any, inputs: Iterable[int], first: int
) -> str:
    value = values[index].value
    if type(value).__name__ == "Null":
        return "" if row.none_ok else "missing"
    if type(value).__name__ != "VkTensor":
        return ""
    if value.constant_id < 0 or index in inputs:
        return f"a run-time value {list(value.dims)}"
    x = values[first].value
    if row.condition == "row-constant" and type(x).__name__ == "VkTensor":
        size = x.dims[-1]
        if prod(value.dims) != size or value.dims[-1] != size:
            return f"a constant {list(value.dims)}, not one row of {size}"
    return ""
