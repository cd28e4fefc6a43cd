# SPDX-License-Identifier: Apache-2.0
"""A `gather` over a dim that is counted from the end.

Every other op of ET-VK counts it; the shader of this one reads with indices that are not its own.
"""

from __future__ import annotations

from typing import cast

from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, edge, is_op, op_name, shape_of
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["GatherDim"]

_DIM = 1


class GatherDim:
    """The rule."""

    name = "gather_dim"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A gather whose dim is negative."""
        if not is_op(node, edge.gather.default) or (view.runs is not None and not view.runs(node)):
            return None
        dim, shape = node.args[_DIM], shape_of(node.args[0])
        if not isinstance(dim, int) or dim >= 0 or not shape:
            return None
        return Match(node, [node], f"{op_name(node)} over dim {dim}", dim + len(shape))

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Count from the start, in place."""
        match.anchor.update_arg(_DIM, cast("int", match.data))
        return verdict
