# SPDX-License-Identifier: Apache-2.0
"""Matrix products that ET-VK turns into linear ops, with a weight or a bias that is no constant.

ET-VK's preprocessing makes a linear op of `mm(x, permute(w))` and `addmm(b, x, permute(w))`, whose
weight and bias are prepacked, without asking whether they are constants. What is computed from
constants is evaluated. A run-time bias, or one that is not a row, is added after the linear op.
With a run-time weight, or the factors of `addmm`, it stays a plain product: the delegate's `mm` and
`addmm` take run-time operands. A copy between the transpose and the product keeps the two apart
until the linear ops are made; preprocessing then drops the copy itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, arg, dims, edge, is_op, shape_of
from etvk_guard.lowering.graph import op_name as name_of
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["RuntimeLinear"]

_OPERAND = {edge.mm.default: 1, edge.addmm.default: 2}
_TRANSPOSES = (edge.permute_copy.default, edge.t_copy.default)


@dataclass
class _Linear:
    """The operands of a product that would become a linear op."""

    transposed: Node
    weight: Node
    bias: Node | None


class RuntimeLinear:
    """The rule."""

    name = "runtime_linear"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A product with a transposed weight, where weight or bias is no constant."""
        if not is_op(node, *_OPERAND) or view.constants.known(node):
            return None
        transposed = node.args[_OPERAND[node.target]]
        if not is_op(transposed, *_TRANSPOSES):
            return None
        weight = cast("Node", cast("Node", transposed).args[0])
        bias = cast("Node", node.args[0]) if is_op(node, edge.addmm.default) else None
        leaves = all(view.constants.leaf(n) for n in (weight, bias) if n is not None)
        odd = _factors(node) or _odd_order(cast("Node", transposed)) or _odd_bias(bias, weight)
        if leaves and not odd:
            return None
        data = _Linear(cast("Node", transposed), weight, bias)
        return Match(node, [node], f"{name_of(node)} of a transposed value", data)

    def check(self, match: Match, view: View) -> Verdict:
        """Evaluate what can be; else add the bias after, or keep the product as it is."""
        linear = cast("_Linear", match.data)
        weight, bias = linear.weight, linear.bias
        reason = (
            _factors(match.anchor)
            or _odd_order(linear.transposed)
            or _why_not("weight", weight, match, view)
        )
        if reason:
            return Verdict(Decision.REWRITTEN, reason, after=1)
        transposed = [linear.transposed] if len(linear.transposed.users) == 1 else []
        claims = transposed + view.constants.chain(weight)
        reason = "" if bias is None else _why_not("bias", bias, match, view)
        reason = reason or _odd_bias(bias, weight)
        if reason:
            return Verdict(Decision.REWRITTEN, reason, claims=claims, after=2, data=True)
        claims += [] if bias is None else view.constants.chain(bias)
        return Verdict(Decision.EVALUATED, claims=claims, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put values in, or keep the product from becoming a linear op."""
        node, linear = match.anchor, cast("_Linear", match.data)
        transposed = linear.transposed
        index = _OPERAND[node.target]
        with editor.graph.inserting_before(node):
            if verdict.decision is Decision.REWRITTEN and not verdict.data:
                copy = editor.call(edge.clone.default, (transposed,), transposed, self.name)
                node.update_arg(index, copy)
                return verdict
            weight = _constant(linear.weight, view, editor)
            args = (weight, *transposed.args[1:])
            target = cast("Callable[..., Any]", transposed.target)
            node.update_arg(index, editor.call(target, args, transposed, self.name))
            if linear.bias is None:
                return verdict
            if verdict.decision is Decision.EVALUATED:
                node.update_arg(0, _constant(linear.bias, view, editor))
                return verdict
            out = editor.call(edge.mm.default, node.args[1:3], node, self.name)
            out = editor.call(edge.add.Tensor, (out, linear.bias), node, self.name)
        editor.replace(node, out)
        return verdict


def _factors(node: Node) -> str:
    """Which factors a linear op would lose; "" for none."""
    if not is_op(node, edge.addmm.default):
        return ""
    beta, alpha = arg(node, 3, "beta", 1), arg(node, 4, "alpha", 1)
    return "" if beta == alpha == 1 else f"its factors beta {beta} and alpha {alpha}"


def _odd_order(transposed: Node) -> str:
    """Why a permutation is not the transpose that a linear op undoes; "" if it is."""
    order = arg(transposed, 1, "dims", [1, 0])
    return "" if [dim % 2 for dim in order] == [1, 0] else f"permuted by {order}, not transposed"


def _odd_bias(bias: Node | None, weight: Node) -> str:
    """Why a linear op would read a bias wrongly: it takes one row; "" if it would not."""
    if bias is None or shape_of(bias) == (shape_of(weight) or ())[:1]:
        return ""
    return f"bias {dims(bias)} is not one row"


def _why_not(label: str, node: Node, match: Match, view: View) -> str:
    """Why an operand is no constant, and cannot be made one; "" if it is or can be."""
    constants = view.constants
    what = f"{label} `{constants.target(node)}` {dims(node)}"
    if constants.leaf(node):
        return ""
    if not constants.known(node):
        return f"{what} is a run-time value, from {constants.culprit(node)}"
    if not view.no_larger(node):
        return f"{what} is larger than what it comes from"
    if not view.evaluable(node, match.nodes):
        return f"{what} is also computed for ops that are not in the delegate"
    return ""


def _constant(node: Node, view: View, editor: GraphEditor) -> Node:
    if view.constants.leaf(node):
        return node
    return editor.constant(view.constants.evaluate(node), "weight", ("value", node))
