# SPDX-License-Identifier: Apache-2.0
"""Ops on integers that ET-VK takes, but has no shader for.

`eq` of integers asks for a shader by a name that no shader has, and aborts. Two integers are equal
where each is at least the other.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dtype_of, edge, is_op, op_name
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["IntegerEquality"]

_INTEGERS = (torch.int32, torch.int64)


class IntegerEquality:
    """The rule."""

    name = "integer_equality"

    def pattern(self, node: Node, view: View) -> Match | None:
        """Whether integers are equal, element by element."""
        if not is_op(node, edge.eq.Tensor) or (view.runs is not None and not view.runs(node)):
            return None
        if any(dtype_of(side) not in _INTEGERS for side in node.args[:2]):
            return None
        ops = (edge.ge.Tensor, edge.le.Tensor, edge.bitwise_and.Tensor)
        if any(op not in view.supported for op in ops):
            return None
        return Match(node, [node], f"{op_name(node)} of integers")

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=3)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Ask for both orders."""
        node = match.anchor
        with editor.graph.inserting_before(node):
            least = editor.call(edge.ge.Tensor, node.args[:2], node, self.name)
            most = editor.call(edge.le.Tensor, node.args[:2], node, self.name)
            out = editor.call(edge.bitwise_and.Tensor, (least, most), node, self.name)
        editor.replace(node, out)
        return verdict
