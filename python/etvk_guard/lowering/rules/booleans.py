# SPDX-License-Identifier: Apache-2.0
"""Ops on booleans that ET-VK has only in another form.

- `logical_not` is lowered by releases whose runtime has no such op: the method aborts. Of booleans
  it is `bitwise_not`, which every runtime has.
- `any(not(x == -inf))` over a row, which `scaled_dot_product_attention` asks of each row of scores,
  runs on the CPU and splits the delegate in two. It is `not(amax(x) == -inf)`, with minus infinity
  as a tensor: as a number, 1.4 cannot write it down.
"""

from __future__ import annotations

from typing import cast

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, arg, dtype_of, edge, is_op, op_name
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["LogicalNot", "MaskedRows"]


class MaskedRows:
    """The rule for `any(not(x == -inf))`."""

    name = "masked_rows"

    def pattern(self, node: Node, view: View) -> Match | None:
        """Whether a row has a value that is not minus infinity."""
        if not is_op(node, edge.any.dim) or edge.eq.Tensor not in view.supported:
            return None
        inverse = node.args[0]
        if not is_op(inverse, edge.logical_not.default):
            return None
        equal = cast("Node", inverse).args[0]
        if not is_op(equal, edge.eq.Scalar) or cast("Node", equal).args[1] != float("-inf"):
            return None
        nodes = [node, cast("Node", inverse), cast("Node", equal)]
        if any(len(step.users) != 1 for step in nodes[1:]):
            return None
        scores = cast("Node", cast("Node", equal).args[0])
        if dtype_of(scores) not in (torch.float16, torch.float32):
            return None
        return Match(node, nodes, "any(not(x == -inf))", scores)

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=3)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Ask the largest value of the row."""
        node, scores = match.anchor, cast("Node", match.data)
        dim, keepdim = arg(node, 1, "dim"), arg(node, 2, "keepdim", False)
        with editor.graph.inserting_before(node):
            largest = editor.call(edge.amax.default, (scores, [dim], keepdim), node, self.name)
            dtype = cast("torch.dtype", dtype_of(scores))
            lowest = editor.constant(
                torch.tensor(float("-inf"), dtype=dtype), "lowest", ("lowest", dtype)
            )
            equal = editor.call(edge.eq.Tensor, (largest, lowest), node, self.name)
            out = editor.call(edge.bitwise_not.default, (equal,), node, self.name)
        editor.replace(node, out)
        return verdict


class LogicalNot:
    """The rule for `logical_not`."""

    name = "logical_not"

    def pattern(self, node: Node, view: View) -> Match | None:
        """The inverse of booleans."""
        if not is_op(node, edge.logical_not.default) or dtype_of(node.args[0]) != torch.bool:
            return None
        if edge.bitwise_not.default not in view.supported:
            return None
        return Match(node, [node], op_name(node))

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Use the op that runtimes have."""
        node = match.anchor
        with editor.graph.inserting_before(node):
            out = editor.call(edge.bitwise_not.default, (node.args[0],), node, self.name)
        editor.replace(node, out)
        return verdict
