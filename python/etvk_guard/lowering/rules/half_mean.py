# SPDX-License-Identifier: Apache-2.0
"""Means and sums of the squares of half values, where they stay outside of a fused norm.

The model casts up to float before it squares. ET-VK runs that cast on buffers, and its reductions
over a row of a buffer are clamped to 65504, the largest half, whatever their dtype: wrong from a
magnitude of 256 on. Squaring a value that is smaller by a power of two, and multiplying the result
back, is exact in float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dtype_of, edge, is_op, op_name, strip_upcasts
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["HalfMean"]

_SCALE = 2.0**-9  # The square of the largest half becomes 2 ** 14.


class HalfMean:
    """The rule."""

    name = "half_mean"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A reduction of the square of a half value that was cast up."""
        if not is_op(node, edge.mean.dim, edge.sum.dim_IntList):
            return None
        square = node.args[0]
        if not isinstance(square, Node) or dtype_of(node) != torch.float32:
            return None
        is_power = is_op(square, edge.pow.Tensor_Scalar) and square.args[1] == 2
        is_product = is_op(square, edge.mul.Tensor) and square.args[0] is square.args[1]
        if not (is_power or is_product):
            return None
        squared = cast("Node", square.args[0])
        source, _ = strip_upcasts(squared)
        if dtype_of(source) != torch.float16 or dtype_of(squared) != torch.float32:
            return None
        return Match(node, [node], f"{op_name(node)} of squares of half values", squared)

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, before=2, after=4)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Square smaller values."""
        node, squared = match.anchor, cast("Node", match.data)
        with editor.graph.inserting_before(node):
            smaller = self._times(squared, _SCALE, node, editor)
            square = editor.call(edge.mul.Tensor, (smaller, smaller), node, self.name)
            target = cast("Callable[..., Any]", node.target)
            args = (square, *node.args[1:])
            reduced = editor.call(target, args, node, self.name, dict(node.kwargs))
            out = self._times(reduced, _SCALE**-2, node, editor)
        editor.replace(node, out)
        return verdict

    def _times(self, x: Node, factor: float, like: Node, editor: GraphEditor) -> Node:
        data = torch.tensor(factor, dtype=torch.float32)
        constant = editor.constant(data, "scale", ("scale", factor))
        return editor.call(edge.mul.Tensor, (x, constant), like, self.name)
