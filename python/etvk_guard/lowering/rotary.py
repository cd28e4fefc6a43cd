# SPDX-License-Identifier: Apache-2.0
"""Whether a rotary embedding that stock would fuse is the one that its op computes.

Stock's patterns for rotary embeddings are matched by structure alone: numbers in the graph (where a
slice begins, which dim is added) are not looked at. The ops take queries and keys as [batch,
sequence, heads, size], and tables of two dims, a row for each place in the sequence. Models of
transformers turn [batch, heads, sequence, size] by a table with a batch: fused, the method aborts
where queries and keys have different numbers of heads, and is silently wrong elsewhere. What does
not fit stays plain ops.
"""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from etvk_guard.lowering.graph import arg, edge, is_op, same_dim, same_shape, shape_of, static

__all__ = ["rotary_fits"]

_TABLE_STEP = 8  # The op of halves turns that many elements of a row at a time.
_RANK = 4
_SLICE = edge.slice_copy.Tensor


def rotary_fits(match: Any) -> bool:
    """Whether stock may fuse a match.

    Args:
        match: a `PatternMatch` of stock's; one that is no rotary embedding fits.
    """
    if match.anchor_node is not None or len(match.input_nodes) != 4:
        return True
    q, k, cos, sin = (shape_of(node) or () for node in match.input_nodes)
    if not len(q) == len(k) == _RANK or not len(cos) == len(sin) == 2:
        return False
    if not (same_dim(q[-1], k[-1]) and same_dim(q[-3], k[-3]) and same_dim(cos[0], q[-3])):
        return False
    if not static(cos[-1]) or not static(q[-1]) or not same_dim(cos[-1], sin[-1]):
        return False
    if any(is_op(node, edge.neg.default) for node in match.all_nodes):
        return (
            cos[-1] % _TABLE_STEP == 0
            and _halves_fit(match, int(cos[-1]), int(q[-1]))
            and _rows_fit(*match.input_nodes[2:])
        )
    return 2 * cos[-1] == q[-1] and _pairs_fit(match)


def _halves_fit(match: Any, turned: int, size: int) -> bool:
    """Whether the first `turned` elements are turned, the second half of them being negated."""
    sources = match.input_nodes[:2]
    inner = [node for node in match.all_nodes if node not in match.input_nodes]
    negated = [node.args[0] for node in inner if is_op(node, edge.neg.default)]
    for node in inner:
        if is_op(node, edge.unsqueeze_copy.default) and arg(node, 1, "dim") != 1:
            return False
        if not is_op(node, _SLICE):
            continue
        if node in negated:
            wanted = (turned // 2, turned // 2)
        elif node.args[0] not in sources:
            wanted = (0, turned // 2)
        elif any(is_op(user, edge.mul.Tensor) for user in node.users):
            wanted = (0, turned)
        else:
            wanted = (turned, size - turned)
        if _cut(node) != (_RANK - 1, *wanted):
            return False
    return True


def _cut(node: Node) -> tuple[Any, ...]:
    """Where a slice is: its dim, start and size; nothing where it leaves elements out."""
    shape = shape_of(node) or ()
    dim = arg(node, 1, "dim", 0)
    if not isinstance(dim, int) or arg(node, 4, "step", 1) != 1:
        return ()
    return dim % len(shape), arg(node, 2, "start", 0) or 0, shape[dim]


def _rows_fit(cos: Node, sin: Node) -> bool:
    """Whether tables are whole, or the same rows of whole tables.

    Of a slice stock takes the whole table, and where the first one's slice starts.
    """
    if not is_op(cos, _SLICE):
        return True
    if not is_op(sin, _SLICE) or not same_shape(cos.args[0], sin.args[0]):
        return False
    first, second = _cut(cos), _cut(sin)
    if not first or first[:2] != second[:2] or first[0] != 0:
        return False
    return isinstance(first[1], Node) or first[1] >= 0


def _pairs_fit(match: Any) -> bool:
    """Whether elements are turned in pairs, the first of a pair being the real part."""
    for node in match.all_nodes:
        shape = shape_of(node) or ()
        if is_op(node, edge.view_copy.default) and node.args[0] in match.input_nodes[2:]:
            if len(shape) != _RANK or shape[0] != 1 or shape[2] != 1:
                return False
        elif is_op(node, edge.cat.default) and shape[-1] != 2:
            return False
        elif is_op(node, edge.sub.Tensor):
            parts = [product.args[0].args[0] for product in node.args]
            if [_cut(part) for part in parts] != [(_RANK, 0, 1), (_RANK, 1, 1)]:
                return False
    return True
