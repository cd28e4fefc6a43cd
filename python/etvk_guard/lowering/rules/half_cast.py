# SPDX-License-Identifier: Apache-2.0
"""Casts to float before a mean of squares that stays unfused.

ET-VK runs `dim_order_ops._to_dim_order_copy` on buffers only, which draws the ops after it to
buffers, and its mean over a row of a buffer is clamped to 65504, the largest half, in every dtype.
Squares of half values beyond 255 pass that. `aten._to_copy`, the same cast, runs on textures, whose
mean is not clamped.
"""

from __future__ import annotations

from typing import cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, cast_dtype, edge, is_cast, is_op
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["HalfCast"]


class HalfCast:
    """The rule."""

    name = "half_cast"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A cast from half to float whose square is averaged."""
        if not is_op(node, exir_ops.edge.dim_order_ops._to_dim_order_copy.default):
            return None
        if not is_cast(node) or cast_dtype(node) != (torch.float16, torch.float32):
            return None
        squares = [u for u in node.users if is_op(u, edge.mul.Tensor, edge.pow.Tensor_Scalar)]
        if not any(is_op(user, edge.mean.dim) for square in squares for user in square.users):
            return None
        return Match(node, [node], "cast to float before a mean of squares")

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Use the other cast op."""
        node = match.anchor
        kwargs = {"dtype": torch.float32}
        with editor.graph.inserting_before(node):
            args = (cast("Node", node.args[0]),)
            out = editor.call(edge._to_copy.default, args, node, self.name, kwargs)
        editor.replace(node, out)
        return verdict
