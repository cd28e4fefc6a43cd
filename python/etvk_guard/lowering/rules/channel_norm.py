# SPDX-License-Identifier: Apache-2.0
"""Group, batch and instance norms whose weight or bias is missing, run-time or computed.

`aten.native_group_norm` and `aten._native_batch_norm_legit_no_training` on ET-VK read weight, bias
and statistics as constants, of images [N, C, H, W] only: of another rank the first is silently
wrong, and the second aborts. What is no constant follows the norm (affine.py), and inputs of
another rank are seen as images. An instance norm comes as a batch norm without statistics of one
batch, which is a group norm whose groups are channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import torch
from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dims, dtype_of, edge, is_op, shape_of, static
from etvk_guard.lowering.rules.affine import Affine, AffinePlan, put_out, results_of
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["ChannelNorm"]

_GROUP = edge.native_group_norm.default
_BATCH = edge._native_batch_norm_legit_no_training.default
_INSTANCE = edge._native_batch_norm_legit.no_stats
_WORDS = {_GROUP: "group norm", _BATCH: "batch norm", _INSTANCE: "instance norm"}
_FLOATS = (torch.float16, torch.float32)
_IMAGE_RANK = 4

Size = int | torch.SymInt


@dataclass
class _Norm:
    """The arguments of a norm over channels.

    Attributes:
        shape: of the input.
        affine: weight and bias.
        rest: the arguments after weight and bias.
    """

    x: Node
    shape: tuple[Size, ...]
    affine: Affine
    rest: tuple[Any, ...]

    @property
    def channels(self) -> int:
        """The second size."""
        return cast("int", self.shape[1])

    @property
    def image(self) -> list[Size]:
        """The input as [N, C, H, W]."""
        n, c, *inner = self.shape
        width = inner[-1] if inner else 1
        height = inner[:-1]
        if all(map(static, height)):
            return [n, c, prod(cast("list[int]", height)), width]
        return [n, c, -1, width]


class ChannelNorm:
    """The rule."""

    name = "channel_norm"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A norm over channels that stock would abort on, get wrong, or not take."""
        if not is_op(node, _GROUP, _BATCH, _INSTANCE):
            return None
        x, weight, bias, *rest = cast("tuple[Any, ...]", node.args)
        shape = shape_of(x) or ()
        if len(shape) < 2 or not static(shape[1]):
            return None
        affine = Affine(weight, bias, cast("int", shape[1]), cast("torch.dtype", dtype_of(x)))
        statistics = rest[:2] if is_op(node, _BATCH) else ()
        sound = affine.are_constants(view) and all(map(view.constants.leaf, statistics))
        if sound and len(shape) == _IMAGE_RANK and not is_op(node, _INSTANCE):
            return None
        outputs = [n for n in node.users if n.args[1] == 0]
        form = f"{_WORDS[node.target]}, {affine.form(view)}"
        if len(shape) != _IMAGE_RANK:
            form += f", of {dims(x)}"
        return Match(node, [node, *outputs], form, _Norm(x, shape, affine, tuple(rest)))

    def check(self, match: Match, view: View) -> Verdict:
        """Fold what is constant, put the rest after the norm, and see the input as an image."""
        norm = cast("_Norm", match.data)
        refusal = _refusal(norm, match.anchor, view)
        if refusal:
            return Verdict(Decision.CPU, refusal, after=1)
        verdict = norm.affine.check(view, 1 + 2 * (len(norm.shape) != _IMAGE_RANK))
        outside = verdict.after - 1 - 2 * (len(norm.shape) != _IMAGE_RANK)
        verdict.after += outside  # each with a view of its operand
        for node in _statistics(norm, match.anchor):
            verdict.claims += [] if view.constants.leaf(node) else view.constants.chain(node)
        verdict.before = 1 + len(set(verdict.claims))
        if norm.affine.are_constants(view) and not verdict.claims:
            verdict.decision = Decision.REWRITTEN
        return verdict

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the legal norm in."""
        norm, plan = cast("_Norm", match.data), cast("AffinePlan", verdict.data)
        old, rule = match.anchor, self.name
        outputs = [n for n in old.users if n.args[1] == 0]
        if not outputs:
            return verdict
        like = outputs[0]
        is_image = len(norm.shape) == _IMAGE_RANK

        def view_as(node: Node, shape: Sequence[Size]) -> Node:
            sizes = [size if static(size) else -1 for size in shape]
            return editor.call(edge.view_copy.default, (node, sizes), like, rule)

        def put(op: Any, out: Node, row: Node) -> Node:
            column = view_as(row, [1, norm.channels, *[1] * (len(norm.shape) - 2)])
            return editor.call(op, (out, column), like, rule)

        with editor.graph.inserting_before(like):
            x = norm.x if is_image else view_as(norm.x, norm.image)
            weight, bias = norm.affine.inside(plan, view, editor)
            target, rest = _legal(norm, old, view, editor)
            made = editor.call(target, (x, weight, bias, *rest), old, rule)
            out = editor.getitem(made, 0, like, rule)
            out = out if is_image else view_as(out, norm.shape)
            out = norm.affine.apply(plan, out, put)
        put_out(old, made, out, editor)
        return verdict


def _statistics(norm: _Norm, anchor: Node) -> tuple[Node, ...]:
    """Mean and variance that a batch norm is given."""
    return cast("tuple[Node, ...]", norm.rest[:2]) if is_op(anchor, _BATCH) else ()


def _legal(
    norm: _Norm, anchor: Node, view: View, editor: GraphEditor
) -> tuple[Any, tuple[Any, ...]]:
    """The op that takes the norm's place, and its arguments after weight and bias."""
    if is_op(anchor, _GROUP):
        return _GROUP, norm.rest
    if is_op(anchor, _INSTANCE):
        n, c, *inner = cast("tuple[int, ...]", norm.shape)
        return _GROUP, (n, c, prod(inner), c, norm.rest[-1])
    dtype = norm.affine.dtype
    given = [
        node
        if view.constants.leaf(node) and dtype_of(node) == dtype
        else editor.constant(view.constants.evaluate(node).to(dtype), "row", ("stat", node, dtype))
        for node in _statistics(norm, anchor)
    ]
    return _BATCH, (*given, *norm.rest[2:])


def _refusal(norm: _Norm, anchor: Node, view: View) -> str:
    """Why the delegate cannot take a norm in any form; "" if it can."""
    if dtype_of(norm.x) not in _FLOATS:
        return f"ET-VK has no {_WORDS[anchor.target]} of {dims(norm.x)}"
    for node in _statistics(norm, anchor):
        if not view.constants.known(node):
            culprit = view.constants.culprit(node)
            return f"`{node.name}` {dims(node)} is a run-time value, from {culprit}"
    if is_op(anchor, _INSTANCE):
        if norm.shape[0] != 1 or not all(map(static, norm.shape)):
            return f"the statistics of several batches, or of dynamic sizes: {dims(norm.x)}"
        if any(index for index in results_of(anchor)):
            return "the mean or the deviation is used"
    if len(norm.shape) != _IMAGE_RANK and sum(not static(s) for s in norm.shape) > 1:
        return f"more than one dynamic size in {dims(norm.x)}, which has to be seen as an image"
    if not view.fits_texture(norm.image):
        return f"{dims(norm.x)} is too large for a texture"
    return ""
