# SPDX-License-Identifier: Apache-2.0
"""Weights that the model computes from constants, for ops that take no other rewrite.

A convolution whose weight is normalized, cast or merged in `forward` would abort. Its weight is
evaluated once, and becomes a constant, if that makes the program no larger than its sources did.
"""

from __future__ import annotations

from typing import cast

from torch.fx import Node

from etvk_guard.lowering.audit import audit_node
from etvk_guard.lowering.graph import GraphEditor, op_name
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["EvaluateWeight"]


class EvaluateWeight:
    """The rule."""

    name = "evaluate_weight"

    def pattern(self, node: Node, view: View) -> Match | None:
        """An op of the contract with an argument that is computed from constants."""
        if node.op != "call_function" or view.constants.known(node):
            return None
        breaches = audit_node(node, view.constants)
        if not breaches or not all(b.evaluable for b in breaches):
            return None
        places = [b.arg for b in breaches if b.arg is not None]
        computed = [cast("Node", node.args[place]) for place in places if place < len(node.args)]
        if len(computed) != len(places) or not all(view.no_larger(n) for n in computed):
            return None
        names = " and ".join(b.name for b in breaches)
        return Match(node, [node], f"{op_name(node)}, {names} computed from constants", places)

    def check(self, match: Match, view: View) -> Verdict:
        """Evaluated, unless others need the computation too."""
        claims: list[Node] = []
        for place in cast("list[int]", match.data):
            computed = cast("Node", match.anchor.args[place])
            if not view.evaluable(computed, match.nodes):
                reason = f"`{computed.name}` is also computed for ops that are not in the delegate"
                return Verdict(Decision.CPU, reason, after=1)
            claims += view.constants.chain(computed)
        return Verdict(Decision.EVALUATED, claims=claims, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the value in."""
        for place in cast("list[int]", match.data):
            computed = cast("Node", match.anchor.args[place])
            data = view.constants.evaluate(computed)
            constant = editor.constant(data, "weight", ("value", computed))
            match.anchor.update_arg(place, constant)
        return verdict
