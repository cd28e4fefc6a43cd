# SPDX-License-Identifier: Apache-2.0
"""The pattern of an RMS norm, `x / sqrt(mean(x^2) + eps)`, as the edge dialect writes it.

Forms read: `x * rsqrt(v)`, `x / sqrt(v)`, `x * v ** -0.5`, `x * (1 / sqrt(v))` and
`x * reciprocal(sqrt(v))`; the square as `x ** 2` or `x * x`; the mean over the last dims, in any
order and counted from either end, with its dims kept or put back by an unsqueeze; eps on either
side of the sum, as a tensor or a number, or missing; casts in either op.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import torch
from torch.fx import Node

from etvk_guard.lowering.constants import Constants
from etvk_guard.lowering.graph import (
    arg,
    dtype_of,
    edge,
    is_cast,
    is_op,
    same_shape,
    shape_of,
    strip_upcasts,
)

__all__ = ["RmsCore", "match_core"]


@dataclass
class RmsCore:
    """A matched norm, without what follows it.

    Attributes:
        anchor: the multiply or division that makes the normalized value.
        operand: the tensor that `anchor` multiplies, in the dtype in which the model computes.
        source: the same tensor before casts that lose nothing; may be `operand`.
        square: the tensor that is squared, as it is squared.
        ndims: how many trailing dims the mean goes over.
        eps: a number, a node (a tensor), or None where the model adds nothing.
        alpha: the factor on eps; 1 unless the model says otherwise.
        nodes: every call of the pattern, `anchor` and the casts before `operand` included.
        form: the pattern in words, for the report.
    """

    anchor: Node
    operand: Node
    source: Node
    square: Node
    ndims: int
    eps: float | Node | None
    alpha: float
    nodes: list[Node] = field(default_factory=list)
    form: str = ""


@dataclass
class _Rstd:
    """The reciprocal root: `inner` is the mean square plus eps."""

    inner: Node
    form: str
    nodes: list[Node]
    unsqueezed: bool


def match_core(node: Node, constants: Constants) -> RmsCore | None:
    """The norm whose normalized value is `node`, or None."""
    for operand, rstd in _splits(node, constants):
        found = _match_mean(node, operand, rstd)
        if found is not None:
            return found
    return None


def _splits(node: Node, constants: Constants) -> Iterator[tuple[Node, _Rstd]]:
    """Each way to read `node` as an operand times a reciprocal root."""
    if is_op(node, edge.mul.Tensor):
        for i in (0, 1):
            operand, other = node.args[i], node.args[1 - i]
            rstd = _match_rstd(other, constants)
            if isinstance(operand, Node) and rstd is not None:
                yield operand, rstd
    elif is_op(node, edge.div.Tensor) and isinstance(node.args[0], Node):
        root = _match_root(node.args[1])
        if root is not None:
            root.form = "x/sqrt(v)"
            yield node.args[0], root


def _match_rstd(node: object, constants: Constants) -> _Rstd | None:
    """Read a node as `1 / sqrt(inner)`."""
    passed: list[Node] = []
    unsqueezed = False
    while isinstance(node, Node) and (is_cast(node) or _puts_back_last(node)):
        unsqueezed |= _puts_back_last(node)
        passed.append(node)
        node = node.args[0]
    found = _match_plain_rstd(node, constants)
    if found is not None:
        found.nodes += passed
        found.unsqueezed |= unsqueezed
    return found


def _match_plain_rstd(node: object, constants: Constants) -> _Rstd | None:
    if not isinstance(node, Node):
        return None
    if is_op(node, edge.rsqrt.default):
        return _Rstd(cast("Node", node.args[0]), "x*rsqrt(v)", [node], False)
    if is_op(node, edge.pow.Tensor_Scalar) and node.args[1] == -0.5:
        return _Rstd(cast("Node", node.args[0]), "x*v**-0.5", [node], False)
    if is_op(node, edge.reciprocal.default):
        return _with(node, _match_root(node.args[0]), "x*reciprocal(sqrt(v))")
    if is_op(node, edge.div.Tensor) and _is_one(node.args[0], constants):
        return _with(node, _match_root(node.args[1]), "x*(1/sqrt(v))")
    if is_op(node, edge.mul.Tensor):
        for i in (0, 1):
            if _is_one(node.args[i], constants):
                return _with(node, _match_plain_rstd(node.args[1 - i], constants), "x*(1/sqrt(v))")
    return None


def _match_root(node: object) -> _Rstd | None:
    """Read a node as `sqrt(inner)`."""
    is_power = is_op(node, edge.pow.Tensor_Scalar) and cast("Node", node).args[1] == 0.5
    if is_op(node, edge.sqrt.default) or is_power:
        root = cast("Node", node)
        return _Rstd(cast("Node", root.args[0]), "", [root], False)
    return None


def _with(node: Node, found: _Rstd | None, form: str) -> _Rstd | None:
    if found is not None:
        found.nodes.append(node)
        found.form = form
    return found


def _is_one(node: object, constants: Constants) -> bool:
    """Whether an operand is the constant 1, of one element."""
    if isinstance(node, (int, float)):
        return node == 1
    if not (isinstance(node, Node) and constants.known(node)):
        return False
    found = node.meta.get("val")
    if not isinstance(found, torch.Tensor) or found.numel() != 1:
        return False
    try:
        return constants.evaluate(node).item() == 1
    except ValueError:
        return False


def _match_mean(anchor: Node, operand: Node, rstd: _Rstd) -> RmsCore | None:
    """Read `rstd.inner` as the mean of the operand's square, plus eps."""
    nodes = [anchor, *rstd.nodes]
    mean, eps, alpha, added = _split_eps(rstd.inner)
    nodes += added
    unsqueezed = rstd.unsqueezed
    if _puts_back_last(mean):
        unsqueezed = True
        nodes.append(mean)
        mean = cast("Node", mean.args[0])
    if not is_op(mean, edge.mean.dim):
        return None
    square = mean.args[0]
    ndims = _trailing_dims(mean, square, unsqueezed)
    squared = _squared(square)
    if ndims is None or squared is None or not _mean_keeps_dtype(mean):
        return None
    source, casts = strip_upcasts(operand)
    square_source, square_casts = strip_upcasts(squared)
    if source is not square_source or not same_shape(anchor, operand):
        return None
    nodes += [mean, cast("Node", square), *casts, *square_casts]
    core = RmsCore(anchor, operand, source, squared, ndims, eps, alpha)
    core.nodes = list(dict.fromkeys(nodes))
    core.form = rstd.form
    return core


def _split_eps(node: Node) -> tuple[Node, float | Node | None, float, list[Node]]:
    """Read a node as `mean + alpha * eps`: the mean, eps, alpha and the calls passed."""
    if is_op(node, edge.add.Scalar):
        return (
            cast("Node", node.args[0]),
            float(cast("float", node.args[1])),
            float(arg(node, 2, "alpha", 1)),
            [node],
        )
    if not is_op(node, edge.add.Tensor):
        return node, None, 1.0, []
    alpha = float(arg(node, 2, "alpha", 1))
    first, second = node.args[0], node.args[1]
    if _reaches_mean(first):
        eps = second if isinstance(second, Node) else float(cast("float", second))
        return cast("Node", first), eps, alpha, [node]
    if _reaches_mean(second) and alpha == 1.0:
        eps = first if isinstance(first, Node) else float(cast("float", first))
        return cast("Node", second), eps, 1.0, [node]
    return node, None, 1.0, []


def _puts_back_last(node: object) -> bool:
    """Whether a node adds a last dim of size 1, as one does after a mean without keepdim."""
    if not (isinstance(node, Node) and is_op(node, edge.unsqueeze_copy.default)):
        return False
    return node.args[1] in (-1, len(shape_of(node) or ()) - 1)


def _reaches_mean(node: object) -> bool:
    if _puts_back_last(node):
        node = cast("Node", node).args[0]
    return is_op(node, edge.mean.dim)


def _trailing_dims(mean: Node, square: object, unsqueezed: bool) -> int | None:
    """How many trailing dims a mean goes over, or None if it does not, or does not keep them."""
    shape = shape_of(square)
    if shape is None:
        return None
    listed = cast("list[int] | None", arg(mean, 1, "dim"))
    rank = len(shape)
    over = sorted(d % rank for d in listed) if listed else list(range(rank))
    if not over or over != list(range(rank - len(over), rank)):
        return None
    keeps = bool(arg(mean, 2, "keepdim", False))
    # Without keepdim, the one dim must have been put back at the end.
    return len(over) if keeps != unsqueezed and (keeps or len(over) == 1) else None


def _mean_keeps_dtype(mean: Node) -> bool:
    """A mean that widens its operand squared it in the narrow dtype, which is another function."""
    return dtype_of(mean) == dtype_of(mean.args[0])


def _squared(node: object) -> Node | None:
    """The tensor of which `node` is the square."""
    if is_op(node, edge.pow.Tensor_Scalar) and cast("Node", node).args[1] == 2:
        return cast("Node", cast("Node", node).args[0])
    if is_op(node, edge.mul.Tensor):
        first, second = cast("Node", node).args[:2]
        if first is second and isinstance(first, Node):
            return first
    return None
