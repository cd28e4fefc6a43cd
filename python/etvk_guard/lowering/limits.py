# SPDX-License-Identifier: Apache-2.0
"""What stock's op builders and shaders do not do, and its partitioner does not ask.

Each limit is a question about one call: the reason why the delegate cannot have it, or "". They
were found by running torch's own sample inputs of ops on the delegate (docs/known-limits.md). Where
a rule makes a legal form of the call, the audit is not asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from etvk_guard.contract.convolutions import Convolution
from etvk_guard.lowering.graph import (
    CAST_OPS,
    arg,
    dims,
    dtype_of,
    is_op,
    op_name,
    shape_of,
    static,
)

__all__ = ["LIMITS", "Limit", "convolution", "resampling"]

Limit = Callable[[Node], str]

_IMAGE_RANK = 4
_CONVOLUTION = "aten.convolution.default"
# Their shaders take the third dim from the end for the channels.
_OF_IMAGES = (
    "aten.native_group_norm.default",
    "aten._native_batch_norm_legit_no_training.default",
)
_OF_TWO = frozenset(
    f"aten.{name}"
    for name in (
        "add.Tensor",
        "bitwise_and.Tensor",
        "bitwise_or.Tensor",
        "div.Tensor",
        "div.Tensor_mode",
        "eq.Tensor",
        "ge.Tensor",
        "gt.Tensor",
        "le.Tensor",
        "logical_and.default",
        "logical_or.default",
        "lt.Tensor",
        "minimum.default",
        "mul.Tensor",
        "pow.Tensor_Tensor",
        "sub.Tensor",
    )
)
_READ_ONLY = (torch.bool, torch.uint8, torch.int8)
_NEAREST = "aten.upsample_nearest2d.vec"
_RESAMPLING = (_NEAREST, "aten.upsample_bilinear2d.vec")
_OVER_DIMS = frozenset(
    f"aten.{name}"
    for name in (
        "_log_softmax.default",
        "_softmax.default",
        "amax.default",
        "amin.default",
        "mean.dim",
        "sum.dim_IntList",
        "var.correction",
        "var.dim",
    )
)


def _images(node: Node) -> str:
    if op_name(node) in _OF_IMAGES and len(shape_of(node.args[0]) or ()) != _IMAGE_RANK:
        return f"the input {dims(node.args[0])} is not four-dimensional"
    return ""


def convolution(node: Node) -> Convolution | None:
    """The numbers of a convolution; None for any other call."""
    weight = shape_of(node.args[1]) if op_name(node) == _CONVOLUTION else None
    if weight is None:
        return None
    stride, padding, dilation = (tuple(node.args[place]) for place in (3, 4, 5))  # type: ignore[arg-type]
    return Convolution(
        tuple(size if isinstance(size, int) else 0 for size in weight),
        stride,
        padding,
        dilation,
        bool(arg(node, 6, "transposed")),
        arg(node, 8, "groups"),
    )


def _convolution(node: Node) -> str:
    """What no shader computes, and what one computes wrongly."""
    call = convolution(node)
    if call is None:
        return ""
    if call.cut_kernel():
        shape = "x".join(map(str, call.weight[2:]))
        return f"a depthwise kernel of {shape} is cut off wrongly at the edge"
    return call.wrong_groups() or call.refused() or call.ignored()


def _numbers(node: Node) -> str:
    """Tensors without dimensions, which are resized by a dimension that they lack."""
    name = op_name(node)
    if name in _OF_TWO and shape_of(node.args[0]) == shape_of(node.args[1]) == ():
        return "neither operand has a dimension"
    if name in _OVER_DIMS and shape_of(node.args[0]) == ():
        return "the input has no dimension"
    return ""


def _casts(node: Node) -> str:
    """Casts to the dtypes that a shader reads, but that none writes."""
    made = dtype_of(node) if is_op(node, *CAST_OPS) else None
    if made in _READ_ONLY and dtype_of(node.args[0]) != made:
        return f"no shader casts to {str(made).removeprefix('torch.')}"
    return ""


def _truncation(node: Node) -> str:
    if op_name(node) == "aten.div.Tensor_mode" and node.kwargs.get("rounding_mode") == "trunc":
        return "it rounds to zero, which the shader does not"
    return ""


def _channels_of_a_batch(node: Node) -> str:
    """Reductions over the dim along which the images of a batch lie behind one another."""
    shape = shape_of(node.args[0]) if op_name(node) in _OVER_DIMS else None
    if shape is None or len(shape) != _IMAGE_RANK or (static(shape[0]) and shape[0] == 1):
        return ""
    over = _reduced(node.args[1] if len(node.args) > 1 else None)
    if any(dim % _IMAGE_RANK in (0, 1) for dim in over):
        return f"it goes over dim {over} of a batch {dims(node.args[0])}"
    return ""


def _indices(node: Node) -> str:
    """An index into another dim than the first, or several."""
    if op_name(node) == "aten.index.Tensor" and len(node.args[1]) != 1:  # type: ignore[arg-type]
        return f"it has {len(node.args[1])} indices"  # type: ignore[arg-type]
    return ""


def resampling(node: Node) -> str:
    """Sizes that the shaders compute otherwise than torch, or that the builder does not expect.

    Asked of calls of aten, too, before they become those of the edge dialect.
    """
    name = str(node.target) if isinstance(node.target, OpOverload) else op_name(node)
    if name not in _RESAMPLING:
        return ""
    sizes = [(shape_of(part) or ())[-2:] for part in (node.args[0], node)]
    if not all(map(static, (*sizes[0], *sizes[1]))):
        return ""
    pairs = list(zip(*sizes, strict=True))
    if name == _NEAREST and any(out % size for size, out in pairs):
        return f"it makes {list(sizes[1])} of {list(sizes[0])}, which is no whole multiple"
    factors = node.args[-1]
    if isinstance(factors, (list, tuple)) and node.args[1] is None:
        for (size, out), factor in zip(pairs, factors, strict=True):
            if size * factor != out:
                return f"the factor {factor} makes no whole number of {size}"
    return ""


def _reduced(value: Any) -> list[int]:
    if isinstance(value, (list, tuple)):
        return [dim for dim in value if isinstance(dim, int)]
    return [value] if isinstance(value, int) else []


LIMITS: tuple[Limit, ...] = (
    _images,
    _convolution,
    _numbers,
    _casts,
    _truncation,
    _channels_of_a_batch,
    _indices,
    resampling,
)
