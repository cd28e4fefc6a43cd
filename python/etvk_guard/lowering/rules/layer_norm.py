# SPDX-License-Identifier: Apache-2.0
"""Layer norms whose weight or bias is missing, run-time, or computed from constants.

`aten.native_layer_norm` on ET-VK reads weight and bias as constant rows, and one normalized dim.
What is no such row becomes ones (or zeros) and a plain multiply (or add) after the norm; what is
computed from constants is evaluated; several normalized dims become one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dims, dtype_of, edge, is_op, shape_of, static
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["LayerNorm"]

_FLOATS = (torch.float16, torch.float32)


@dataclass
class _Layer:
    """The arguments of a layer norm."""

    x: Node
    size: int
    ndims: int
    weight: Node | None
    bias: Node | None
    eps: float


@dataclass
class _Plan:
    """What becomes of weight and bias: `fold_*` says that it goes into the norm."""

    fold_weight: bool
    fold_bias: bool


class LayerNorm:
    """The rule."""

    name = "layer_norm"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A layer norm that stock would abort on, or that computes its weight from constants."""
        if not is_op(node, edge.native_layer_norm.default):
            return None
        x, shape, weight, bias, eps = cast("tuple[Node, list[int], Node, Node, float]", node.args)
        if not all(map(static, shape)):
            return None
        leaf = view.constants.leaf
        if leaf(weight) and leaf(bias) and len(shape) == 1:
            return None
        layer = _Layer(x, prod(shape), len(shape), weight, bias, eps)
        outputs = [n for n in node.users if n.args[1] == 0]
        return Match(node, [node, *outputs], _form(layer, view), layer)

    def check(self, match: Match, view: View) -> Verdict:
        """Fold what is constant, put the rest after the norm."""
        layer = cast("_Layer", match.data)
        refusal = _refusal(layer, match.anchor)
        if refusal:
            return Verdict(Decision.CPU, refusal, after=1)
        fold_weight = layer.weight is not None and view.constants.known(layer.weight)
        # With the weight outside, the bias must be added after it.
        weight_inside = fold_weight or layer.weight is None
        fold_bias = layer.bias is not None and view.constants.known(layer.bias) and weight_inside
        claims = [
            step
            for node, fold in ((layer.weight, fold_weight), (layer.bias, fold_bias))
            if fold
            for step in view.constants.chain(cast("Node", node))
        ]
        after = 1 + _left(layer.weight, fold_weight) + _left(layer.bias, fold_bias)
        after += 2 * (layer.ndims > 1)
        reason = _reason(layer, fold_weight, fold_bias, view)
        decision = Decision.EVALUATED if claims and not reason else Decision.UNIT
        plan = _Plan(fold_weight, fold_bias)
        return Verdict(decision, reason, claims, 1 + len(set(claims)), after, plan)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the legal norm in."""
        layer, plan = cast("_Layer", match.data), cast("_Plan", verdict.data)
        old, rule = match.anchor, self.name
        outputs = [n for n in old.users if n.args[1] == 0]
        if not outputs:
            return verdict
        like = outputs[0]
        with editor.graph.inserting_before(like):
            x = layer.x
            if layer.ndims > 1:
                x = editor.call(edge.view_copy.default, (x, [_rows(layer), layer.size]), like, rule)
            weight = _row(layer, layer.weight if plan.fold_weight else None, 1.0, view, editor)
            bias = _row(layer, layer.bias if plan.fold_bias else None, 0.0, view, editor)
            args = (x, [layer.size], weight, bias, layer.eps)
            norm = editor.call(edge.native_layer_norm.default, args, old, rule)
            out = editor.getitem(norm, 0, like, rule)
            if layer.ndims > 1:
                shape = [s if static(s) else -1 for s in shape_of(like) or ()]
                out = editor.call(edge.view_copy.default, (out, shape), like, rule)
            if layer.weight is not None and not plan.fold_weight:
                out = editor.call(edge.mul.Tensor, (out, layer.weight), like, rule)
            if layer.bias is not None and not plan.fold_bias:
                out = editor.call(edge.add.Tensor, (out, layer.bias), like, rule)
        for index, results in _results(old).items():
            for result in results:
                if index == 0:
                    editor.replace(result, out)
                else:
                    result.replace_input_with(old, norm)
        return verdict


def _results(node: Node) -> dict[int, list[Node]]:
    """The getitems of an op with several results, by index."""
    found: dict[int, list[Node]] = {}
    for user in node.users:
        found.setdefault(cast("int", user.args[1]), []).append(user)
    return found


def _form(layer: _Layer, view: View) -> str:
    def kind(node: Node | None) -> str:
        if node is None:
            return "none"
        if view.constants.leaf(node):
            return "constant"
        return "computed constant" if view.constants.known(node) else "run-time"

    over = f", over {layer.ndims} dims" if layer.ndims > 1 else ""
    return f"layer norm, weight {kind(layer.weight)}, bias {kind(layer.bias)}{over}"


def _refusal(layer: _Layer, anchor: Node) -> str:
    """Why a layer norm cannot be written so that the delegate takes it; "" if it can."""
    shape = shape_of(layer.x) or ()
    if dtype_of(layer.x) not in _FLOATS:
        return f"ET-VK has no layer norm of {dims(layer.x)}"
    if layer.ndims > 1:
        if any(index for index in _results(anchor)):
            return "the mean or the deviation of several dims is used"
        if sum(not static(s) for s in shape) > 1:
            return f"more than one dynamic size in {dims(layer.x)}, which has to be flattened"
    return ""


def _left(node: Node | None, folded: bool) -> int:
    return int(node is not None and not folded)


def _reason(layer: _Layer, fold_weight: bool, fold_bias: bool, view: View) -> str:
    """Why an op is left after the norm; "" if none is."""
    for label, node, folded in (
        ("weight", layer.weight, fold_weight),
        ("bias", layer.bias, fold_bias),
    ):
        if node is None or folded:
            continue
        if view.constants.known(node):
            return "the bias is added after the run-time weight"
        culprit = view.constants.culprit(node)
        return f"{label} `{node.name}` {dims(node)} is a run-time value, from {culprit}"
    return ""


def _rows(layer: _Layer) -> int:
    shape = shape_of(layer.x) or ()
    lead = shape[: len(shape) - layer.ndims]
    return prod(cast("tuple[int, ...]", lead)) if all(map(static, lead)) else -1


def _row(layer: _Layer, node: Node | None, fill: float, view: View, editor: GraphEditor) -> Node:
    """A constant `[size]`: the given one, evaluated if it has to be, or one of `fill`."""
    dtype = cast("torch.dtype", dtype_of(layer.x))
    if node is None:
        return editor.filled(layer.size, fill, dtype)
    if view.constants.leaf(node) and layer.ndims == 1 and dtype_of(node) == dtype:
        return node
    data = view.constants.evaluate(node).reshape(layer.size).to(dtype)
    return editor.constant(data, "row", ("row", node, dtype, layer.size))
