# SPDX-License-Identifier: Apache-2.0
"""Ops with a Python number, which ET-VK runs only with a tensor.

`F.rms_norm` and other decompositions leave `aten.add.Scalar` behind, for which ET-VK has no
builder: each one would split the delegate in two. The number becomes a constant of no dims, as the
edge dialect does itself for numbers that it finds in the model.
"""

from __future__ import annotations

from typing import cast

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, arg, dtype_of, edge, is_op, op_name, shape_of
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["ScalarOperand"]

_TENSOR_FORMS = {
    edge.add.Scalar: edge.add.Tensor,
    edge.sub.Scalar: edge.sub.Tensor,
    edge.mul.Scalar: edge.mul.Tensor,
    edge.div.Scalar: edge.div.Tensor,
}
_FLOATS = (torch.float16, torch.float32)


class ScalarOperand:
    """The rule."""

    name = "scalar_operand"

    def pattern(self, node: Node, view: View) -> Match | None:
        """An op with a number that ET-VK would leave to the CPU."""
        if not is_op(node, *_TENSOR_FORMS) or node.target in view.supported:
            return None
        number = node.args[1]
        if not isinstance(number, (int, float)) or dtype_of(node) not in _FLOATS:
            return None
        if dtype_of(node) != dtype_of(node.args[0]) or view.constants.known(node):
            return None
        if shape_of(node.args[0]) == ():  # ET-VK runs no op on two tensors without dimensions
            return None
        return Match(node, [node], f"{op_name(node)} with {number}", number)

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Use the form with a tensor."""
        node = match.anchor
        target = _TENSOR_FORMS[node.target]
        number = float(cast("float", match.data)) * float(arg(node, 2, "alpha", 1))
        dtype = cast("torch.dtype", dtype_of(node))
        with editor.graph.inserting_before(node):
            data = torch.tensor(number, dtype=dtype)
            scalar = editor.constant(data, "scalar", ("scalar", number, dtype))
            out = editor.call(target, (node.args[0], scalar), node, self.name)
        editor.replace(node, out)
        return verdict
