# SPDX-License-Identifier: Apache-2.0
"""Calls that stock's op builders refuse although every operand is as the prepack contract has it.

Sources: `impl/Convolution.cpp`, `Conv1dPW.cpp`, `Pool.cpp`, `BinaryOp.cpp`, `IndexTensor.cpp`,
`Reduce.cpp`, `Softmax.cpp`, `Upsample.cpp` and `utils/KernelUtils.cpp`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etvk_guard import contract
from etvk_guard.contract.convolutions import Convolution
from etvk_guard.reference.dtypes import HEIGHT_PACKED

if TYPE_CHECKING:
    from etvk_guard.pte import Graph, Op, VkTensor

__all__ = ["LIMITS", "Refusal", "convolution_of"]

_IMAGE_RANK: Final = 4
_INT32, _INT64 = 3, 7  # VkDataType


class Refusal(NamedTuple):
    """Why stock throws: the finding's code, the argument, and the reason in words."""

    code: str
    argument: str
    reason: str


Limit = Callable[["Graph", "Op"], "Refusal | None"]


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten.{name}" for name in names.split())


_CONVOLUTIONS: Final = frozenset(
    {"aten.convolution.default", "conv_with_clamp.default", "et_vk.conv_with_clamp.default"}
)
_POOLS: Final = _aten("avg_pool2d.default max_pool2d.default max_pool2d_with_indices.default")
_POOL_LISTS: Final = ((1, "kernel_size"), (2, "stride"), (3, "padding"), (4, "dilation"))
_CONVOLUTION_LISTS: Final = (
    (3, "stride"),
    (4, "padding"),
    (5, "dilation"),
    (7, "output_padding"),
)
_OF_TWO: Final = _aten(
    "add.Tensor bitwise_and.Tensor bitwise_or.Tensor div.Tensor div.Tensor_mode eq.Tensor ge.Tensor"
    " gt.Tensor le.Tensor logical_and.default logical_or.default lt.Tensor minimum.default"
    " mul.Tensor pow.Tensor_Tensor sub.Tensor"
)
_OVER_DIMS: Final = _aten(
    "_log_softmax.default _softmax.default amax.default amin.default mean.dim sum.dim_IntList"
    " var.dim"
)
_RESAMPLING: Final = _aten("upsample_bilinear2d.vec upsample_nearest2d.vec")
# Where a number of another type is left out instead, which is no abort.
_LENIENT: Final = _aten("avg_pool2d.default")


def _tensor(graph: Graph, value_id: int) -> VkTensor | None:
    value = graph.values[value_id]
    return value.value if value.kind == "tensor" else None


def _dims(graph: Graph, value_id: int) -> tuple[int, ...] | None:
    tensor = _tensor(graph, value_id)
    return None if tensor is None else tuple(tensor.dims)


def _value(graph: Graph, op: Op, place: int, kind: str, default: Any) -> Any:
    """An argument of one kind, or `default`."""
    if place >= len(op.args) - 1:
        return default
    value = graph.values[op.args[place]]
    return value.value if value.kind == kind else default


def convolution_of(graph: Graph, op: Op) -> Convolution | None:
    """The numbers of a convolution whose lists and weight are as they should be, else None."""
    if op.name not in _CONVOLUTIONS or len(op.args) < 10:
        return None
    weight = _dims(graph, op.args[1])
    lists = [_value(graph, op, place, "int_list", ()) for place in (3, 4, 5)]
    if (
        weight is None
        or len(weight) < 3
        or any(len(numbers) != len(weight) - 2 for numbers in lists)
    ):
        return None
    stride, padding, dilation = map(tuple, lists)
    groups = _value(graph, op, 8, "int", 1)
    return Convolution(
        weight, stride, padding, dilation, _value(graph, op, 6, "bool", False), groups
    )


def height_packed(graph: Graph, op: Op) -> bool:
    """Whether the first argument of an op is packed along its height."""
    tensor = _tensor(graph, op.args[0])
    return tensor is not None and tensor.layout == HEIGHT_PACKED


def _number_types(graph: Graph, op: Op) -> Refusal | None:
    info = contract.op(op.name)
    for place in () if info is None or op.name in _LENIENT else info.integers:
        if place < len(op.args) - 1 and graph.values[op.args[place]].kind == "double":
            return Refusal("EG210", f"argument {place}", "it is stored as a float")
    return None


def _short_lists(graph: Graph, op: Op) -> Refusal | None:
    lists: tuple[tuple[int, str], ...] = ()
    if op.name in _POOLS:
        lists = _POOL_LISTS[: 4 if "max" in op.name else 3]
    elif op.name in _CONVOLUTIONS and len(_dims(graph, op.args[1]) or ()) == _IMAGE_RANK:
        transposed = _value(graph, op, 6, "bool", False)
        lists = _CONVOLUTION_LISTS[: 4 if transposed else 3]
    for place, name in lists:
        numbers = _value(graph, op, place, "int_list", None)
        if numbers is not None and len(numbers) != 2:
            return Refusal("EG211", name, f"it has {len(numbers)} numbers, not two")
    return None


def _convolution(graph: Graph, op: Op) -> Refusal | None:
    call = convolution_of(graph, op)
    if call is None or not (call.of_images or height_packed(graph, op)):
        return None
    refused = call.refused()
    return Refusal("EG213", "weight", refused) if refused else None


def _integer_equality(graph: Graph, op: Op) -> Refusal | None:
    left = _tensor(graph, op.args[0]) if op.name == "aten.eq.Tensor" else None
    if left is None or left.dtype not in (_INT32, _INT64):
        return None
    return Refusal("EG215", "self", "no shader compares integers for equality")


def _no_dimensions(graph: Graph, op: Op) -> Refusal | None:
    places = 2 if op.name in _OF_TWO else int(op.name in _OVER_DIMS)
    if places == 0 or any(_dims(graph, value_id) != () for value_id in op.args[:places]):
        return None
    return Refusal("EG216", "self", "it has no dimension")


def _indices(graph: Graph, op: Op) -> Refusal | None:
    if op.name != "aten.index.Tensor":
        return None
    count = len(_value(graph, op, 1, "value_list", ()))
    return None if count == 1 else Refusal("EG218", "indices", f"there are {count} of them")


def _factors(graph: Graph, op: Op) -> Refusal | None:
    if op.name not in _RESAMPLING or graph.values[op.args[1]].kind != "null":
        return None
    factors = _value(graph, op, len(op.args) - 2, "double_list", ())
    read, made = (_dims(graph, value_id) or () for value_id in (op.args[0], op.args[-1]))
    for size, out, factor in zip(read[-2:], made[-2:], factors, strict=False):
        if _float(size * _float(factor)) != out:
            return Refusal("EG220", "scale_factors", f"{size} times {factor} is not {out}")
    return None


def _float(number: float) -> float:
    """Rounded to float32, in which stock multiplies."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def _reduced_channels(graph: Graph, op: Op) -> Refusal | None:
    dims = _dims(graph, op.args[0]) if op.name in _OVER_DIMS else None
    if dims is None or len(dims) != _IMAGE_RANK or dims[0] == 1:
        return None
    reduced = graph.values[op.args[1]]
    listed = reduced.value if reduced.kind == "int_list" else [reduced.value]
    if any(isinstance(dim, int) and dim % _IMAGE_RANK == 1 for dim in listed):
        return Refusal("EG209", "dim", "it goes over the second of four dims")
    return None


LIMITS: Final[tuple[Limit, ...]] = (
    _reduced_channels,
    _number_types,
    _short_lists,
    _convolution,
    _integer_equality,
    _no_dimensions,
    _indices,
    _factors,
)
