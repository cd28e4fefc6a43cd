# SPDX-License-Identifier: Apache-2.0
"""Weight and bias of a norm: what of them goes into the op, and what has to follow it.

ET-VK's norms read both as constants. What is missing becomes ones or zeros, what is computed from
constants is evaluated, and a run-time one follows as a plain multiply or add.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dims, dtype_of, edge
from etvk_guard.lowering.site import Decision, Verdict, View

__all__ = ["Affine", "AffinePlan", "put_out", "results_of"]


@dataclass
class AffinePlan:
    """What goes into the norm."""

    weight: bool
    bias: bool


@dataclass
class Affine:
    """Weight and bias of a norm; None where one is missing.

    Attributes:
        size: elements of each.
        dtype: of the norm's input.
    """

    weight: Node | None
    bias: Node | None
    size: int
    dtype: torch.dtype

    def are_constants(self, view: View) -> bool:
        """Whether stock takes both as they are."""
        return view.constants.leaf(self.weight) and view.constants.leaf(self.bias)

    def form(self, view: View) -> str:
        """Both in words."""
        return f"weight {_kind(self.weight, view)}, bias {_kind(self.bias, view)}"

    def check(self, view: View, after: int = 1) -> Verdict:
        """Fold what is constant, put the rest after the norm; `after` ops are the norm's own."""
        known = view.constants.known
        fold_weight = self.weight is not None and known(self.weight)
        # With the weight outside, the bias must be added after it.
        inside = fold_weight or self.weight is None
        plan = AffinePlan(fold_weight, self.bias is not None and known(self.bias) and inside)
        folded = [(self.weight, plan.weight), (self.bias, plan.bias)]
        claims = [
            step
            for node, fold in folded
            if fold
            for step in view.constants.chain(cast("Node", node))
        ]
        after += sum(node is not None and not fold for node, fold in folded)
        reason = self._reason(plan, view)
        decision = Decision.EVALUATED if claims and not reason else Decision.UNIT
        return Verdict(decision, reason, claims, 1 + len(set(claims)), after, plan)

    def _reason(self, plan: AffinePlan, view: View) -> str:
        """Why an op is left after the norm; "" if none is."""
        operands = (("weight", self.weight, plan.weight), ("bias", self.bias, plan.bias))
        for label, node, folded in operands:
            if node is None or folded:
                continue
            if view.constants.known(node):
                return "the bias is added after the run-time weight"
            culprit = view.constants.culprit(node)
            return f"{label} `{node.name}` {dims(node)} is a run-time value, from {culprit}"
        return ""

    def inside(self, plan: AffinePlan, view: View, editor: GraphEditor) -> tuple[Node, Node]:
        """The two constants that the norm gets."""
        weight = self._row(self.weight if plan.weight else None, 1.0, view, editor)
        return weight, self._row(self.bias if plan.bias else None, 0.0, view, editor)

    def _row(self, node: Node | None, fill: float, view: View, editor: GraphEditor) -> Node:
        """A constant `[size]`: the given one, evaluated if it has to be, or one of `fill`."""
        if node is None:
            return editor.filled(self.size, fill, self.dtype)
        if view.constants.leaf(node) and _rank(node) == 1 and dtype_of(node) == self.dtype:
            return node
        data = view.constants.evaluate(node).reshape(self.size).to(self.dtype)
        return editor.constant(data, "row", ("row", node, self.dtype, self.size))

    def apply(
        self,
        plan: AffinePlan,
        out: Node,
        put: Callable[[Callable[..., Node], Node, Node], Node],
    ) -> Node:
        """What follows the norm; `put(op, out, operand)` inserts it."""
        if self.weight is not None and not plan.weight:
            out = put(edge.mul.Tensor, out, self.weight)
        if self.bias is not None and not plan.bias:
            out = put(edge.add.Tensor, out, self.bias)
        return out


def _rank(node: Node) -> int:
    return len(cast("torch.Tensor", node.meta["val"]).shape)


def _kind(node: Node | None, view: View) -> str:
    if node is None:
        return "none"
    if view.constants.leaf(node):
        return "constant"
    return "computed constant" if view.constants.known(node) else "run-time"


def results_of(node: Node) -> dict[int, list[Node]]:
    """The getitems of an op with several results, by index."""
    found: dict[int, list[Node]] = {}
    for user in node.users:
        found.setdefault(cast("int", user.args[1]), []).append(user)
    return found


def put_out(old: Node, norm: Node, out: Node, editor: GraphEditor) -> None:
    """Let `out` take the place of the first result of `old`, and `norm` give the others."""
    for index, results in results_of(old).items():
        for result in results:
            if index == 0:
                editor.replace(result, out)
            else:
                result.replace_input_with(old, norm)
