# SPDX-License-Identifier: Apache-2.0
"""Values computed from constants by ops that the delegate cannot run, or not rightly.

- ET-VK has no op that dequantizes by channel, token or group: a weight that is kept in eight bits
  for an op without a quantized form would abort. A constant that is quantized and dequantized
  again, as in training, would lose its rounding, since stock drops the pair.
- An op that takes one constant as a weight and as a value to compute with, as `F.linear(w, w)`
  does: preprocessing puts a prepack op before both, and the weight is no constant any more.
- What stock leaves to the CPU, which splits the delegate: the buckets of T5's relative positions,
  say. Of these, values that are not much larger than what they come from.

Such values are evaluated once.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from etvk_guard import contract
from etvk_guard.lowering import _compat
from etvk_guard.lowering.audit import audit_node
from etvk_guard.lowering.graph import GraphEditor, dims, dtype_of, op_name
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["ConstantValue"]

_FLOATS = (torch.float16, torch.float32)
_ROOM = 1 << 18
"""Elements to which a value may grow that the CPU could compute at run time: 1 MiB in float32."""


class ConstantValue:
    """The rule."""

    name = "constant_value"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A known value that an op of unknown result uses."""
        constants = view.constants
        if not constants.computed(node) or dtype_of(node) not in _FLOATS:
            return None
        if all(constants.known(user) or _stays_out(user, view) for user in node.users):
            return None
        chain = constants.chain(node)
        if not any(map(_cannot_run, chain)) and not _splits(node, chain, view):
            return None
        return Match(node, [node], f"{op_name(node)} of a constant {dims(node)}")

    def check(self, match: Match, view: View) -> Verdict:
        """Evaluated, unless its sources are needed elsewhere, where the delegate lacks them."""
        if not view.evaluable(match.anchor, match.anchor.users):
            return Verdict(Decision.CPU, "its source is also used outside of the delegate", after=1)
        return Verdict(Decision.EVALUATED, claims=view.constants.chain(match.anchor), after=0)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the value in."""
        data = view.constants.evaluate(match.anchor)
        constant = editor.constant(data, "value", ("value", match.anchor))
        editor.replace(match.anchor, constant)
        return verdict


def _stays_out(node: Node, view: View) -> bool:
    """Whether the contract keeps a call out of the delegate, whatever is evaluated."""
    return any(not breach.evaluable for breach in audit_node(node, view.constants))


def _splits(node: Node, chain: list[Node], view: View) -> bool:
    """Whether a value that an op of the delegate needs would be computed outside of it."""
    if view.runs is None:
        return True
    return (
        not all(map(view.runs, chain))
        and any(map(view.runs, node.users))
        and view.no_larger(node, _ROOM)
        and view.evaluable(node, node.users)
    )


def _cannot_run(node: Node) -> bool:
    if _compat.is_dequant_node(node):
        return True
    places = [row.arg for row in contract.rows(op_name(node)) if row.arg < len(node.args)]
    prepacked = [node.args[place] for place in places if isinstance(node.args[place], Node)]
    return any(list(node.args).count(argument) > 1 for argument in prepacked)
