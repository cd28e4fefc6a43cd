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
from etvk_guard.lowering.rules.affine import Affine, AffinePlan, put_out, results_of
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["LayerNorm"]

_FLOATS = (torch.float16, torch.float32)


@dataclass
class _Layer:
    """The arguments of a layer norm."""

    x: Node
    size: int
    ndims: int
    affine: Affine
    eps: float


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
        affine = Affine(weight, bias, prod(shape), cast("torch.dtype", dtype_of(x)))
        if affine.are_constants(view) and len(shape) == 1:
            return None
        layer = _Layer(x, prod(shape), len(shape), affine, eps)
        outputs = [n for n in node.users if n.args[1] == 0]
        over = f", over {layer.ndims} dims" if layer.ndims > 1 else ""
        return Match(node, [node, *outputs], f"layer norm, {affine.form(view)}{over}", layer)

    def check(self, match: Match, view: View) -> Verdict:
        """Fold what is constant, put the rest after the norm."""
        layer = cast("_Layer", match.data)
        refusal = _refusal(layer, match.anchor)
        if refusal:
            return Verdict(Decision.CPU, refusal, after=1)
        return layer.affine.check(view, 1 + 2 * (layer.ndims > 1))

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the legal norm in."""
        layer, plan = cast("_Layer", match.data), cast("AffinePlan", verdict.data)
        old, rule = match.anchor, self.name
        outputs = [n for n in old.users if n.args[1] == 0]
        if not outputs:
            return verdict
        like = outputs[0]
        with editor.graph.inserting_before(like):
            x = layer.x
            if layer.ndims > 1:
                x = editor.call(edge.view_copy.default, (x, [_rows(layer), layer.size]), like, rule)
            weight, bias = layer.affine.inside(plan, view, editor)
            args = (x, [layer.size], weight, bias, layer.eps)
            norm = editor.call(edge.native_layer_norm.default, args, old, rule)
            out = editor.getitem(norm, 0, like, rule)
            if layer.ndims > 1:
                shape = [s if static(s) else -1 for s in shape_of(like) or ()]
                out = editor.call(edge.view_copy.default, (out, shape), like, rule)
            out = layer.affine.apply(
                plan, out, lambda op, out, row: editor.call(op, (out, row), like, rule)
            )
        put_out(old, norm, out, editor)
        return verdict


def _refusal(layer: _Layer, anchor: Node) -> str:
    """Why a layer norm cannot be written so that the delegate takes it; "" if it can."""
    shape = shape_of(layer.x) or ()
    if dtype_of(layer.x) not in _FLOATS:
        return f"ET-VK has no layer norm of {dims(layer.x)}"
    if layer.ndims > 1:
        if any(index for index in results_of(anchor)):
            return "the mean or the deviation of several dims is used"
        if sum(not static(s) for s in shape) > 1:
            return f"more than one dynamic size in {dims(layer.x)}, which has to be flattened"
    return ""


def _rows(layer: _Layer) -> int:
    shape = shape_of(layer.x) or ()
    lead = shape[: len(shape) - layer.ndims]
    return prod(cast("tuple[int, ...]", lead)) if all(map(static, lead)) else -1
