# SPDX-License-Identifier: Apache-2.0
"""Matrix products whose right operand is a transposed run-time value.

ET-VK's preprocessing turns `mm(x, permute(w))` and `addmm(b, x, permute(w))` into a linear op,
whose weight is prepacked, without asking whether w is a constant. As plain products the delegate
runs them: its `mm` and `addmm` take run-time operands. A copy between the transpose and the product
keeps the two apart until the linear ops are made; preprocessing then drops the copy itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dims, edge, is_op, op_name
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["RuntimeLinear"]

_OPERAND = {edge.mm.default: 1, edge.addmm.default: 2}
_TRANSPOSES = (edge.permute_copy.default, edge.t_copy.default)
_DEQUANTIZE = "dequantize"


class RuntimeLinear:
    """The rule."""

    name = "runtime_linear"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A product with a transposed value that is not a constant."""
        if not is_op(node, *_OPERAND):
            return None
        transposed = node.args[_OPERAND[node.target]]
        if not is_op(transposed, *_TRANSPOSES):
            return None
        weight = cast("Node", cast("Node", transposed).args[0])
        # A dequantized constant is stock's own business: it becomes a quantized linear op.
        if view.constants.leaf(weight) or _DEQUANTIZE in op_name(weight):
            return None
        return Match(node, [node], f"{op_name(node)} of a transposed value", weight)

    def check(self, match: Match, view: View) -> Verdict:
        """Evaluate the weight if it can be, else keep the product, which is right as it is."""
        weight = cast("Node", match.data)
        if view.constants.known(weight):
            if view.no_larger(weight) and view.evaluable(weight, match.nodes):
                chain = view.constants.chain(weight)
                return Verdict(Decision.EVALUATED, claims=chain, after=1)
            reason = f"weight `{weight.name}` {dims(weight)} is larger than what it comes from"
        else:
            culprit = view.constants.culprit(weight)
            reason = f"weight `{weight.name}` {dims(weight)} is a run-time value, from {culprit}"
        return Verdict(Decision.REWRITTEN, reason, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the weight's value in, or keep the product from becoming a linear op."""
        node = match.anchor
        index = _OPERAND[node.target]
        transposed = cast("Node", node.args[index])
        with editor.graph.inserting_before(node):
            if verdict.decision is Decision.EVALUATED:
                weight = cast("Node", match.data)
                data = view.constants.evaluate(weight)
                constant = editor.constant(data, "weight", ("value", weight))
                args = (constant, *transposed.args[1:])
                target = cast("Callable[..., Any]", transposed.target)
                fresh = editor.call(target, args, transposed, self.name)
                node.update_arg(index, fresh)
                return verdict
            copy = editor.call(edge.clone.default, (transposed,), transposed, self.name)
        node.update_arg(index, copy)
        return verdict
