# SPDX-License-Identifier: Apache-2.0
"""Numbers that the model computes from constants, such as the 1 in `1 + scale` cast to float.

ET-VK would compute them in each run, and casts them on buffers only, which draws the ops after them
to buffers and costs a copy back. One element is evaluated once; larger values are left alone.
"""

from __future__ import annotations

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dims, dtype_of, numel, op_name
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["ConstantScalar"]

_FLOATS = (torch.float16, torch.float32)


class ConstantScalar:
    """The rule."""

    name = "constant_scalar"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A known number that an op of unknown result uses."""
        if numel(node) != 1 or not view.constants.computed(node) or dtype_of(node) not in _FLOATS:
            return None
        users = [user for user in node.users if user.op == "call_function"]
        if len(users) != len(node.users) or all(view.constants.known(user) for user in users):
            return None
        if not view.evaluable(node, users):
            return None
        return Match(node, [node], f"{op_name(node)} of a constant {dims(node)}")

    def check(self, match: Match, view: View) -> Verdict:
        """Always evaluated."""
        chain = view.constants.chain(match.anchor)
        return Verdict(Decision.EVALUATED, claims=chain, after=0)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the value in."""
        data = view.constants.evaluate(match.anchor)
        constant = editor.constant(data, "scalar", ("value", match.anchor))
        editor.replace(match.anchor, constant)
        return verdict
