# SPDX-License-Identifier: Apache-2.0
"""Strides, paddings and dilations of images that are not spelled out.

The dialect allows one number for both dims (`conv2d(padding="valid")` makes such lists), and no
stride at all where it is the kernel's size (`avg_pool2d(x, 2)`). ET-VK's op builders read two
numbers, and abort.
"""

from __future__ import annotations

from typing import Any, cast

from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, arg, edge, is_op, op_name, shape_of
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["ImageLists"]

_IMAGE_RANKS = (3, 4)
# By op: the lists of two numbers, as argument and name. The first of a pool is its kernel.
_POOLS = {
    edge.avg_pool2d.default: ((1, "kernel_size"), (2, "stride"), (3, "padding")),
    edge.max_pool2d_with_indices.default: (
        (1, "kernel_size"),
        (2, "stride"),
        (3, "padding"),
        (4, "dilation"),
    ),
}
_CONVOLUTION = ((3, "stride"), (4, "padding"), (5, "dilation"), (7, "output_padding"))


class ImageLists:
    """The rule."""

    name = "image_lists"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A convolution or a pooling of images, one of whose lists lacks numbers."""
        if node.target not in view.supported or (view.runs is not None and not view.runs(node)):
            return None
        changes = {
            index: wanted
            for index, name, given in self._lists(node)
            if (wanted := self._spelled_out(node, name, given)) != given
        }
        if not changes:
            return None
        return Match(node, [node], f"{op_name(node)} with short lists", changes)

    def _lists(self, node: Node) -> list[tuple[int, str, list[Any]]]:
        positions: tuple[tuple[int, str], ...] = _POOLS.get(node.target, ())
        if is_op(node, edge.convolution.default) and len(shape_of(node.args[1]) or ()) == 4:
            positions = _CONVOLUTION
        found = []
        for index, name in positions:
            given = arg(node, index, name)
            if index < len(node.args) or (name == "stride" and given is None):
                found.append((index, name, list(given or ())))
        return found

    def _spelled_out(self, node: Node, name: str, given: list[Any]) -> list[Any]:
        if not given and name == "stride":
            return self._spelled_out(node, "", list(cast("list[int]", node.args[1])))
        return given * 2 if len(given) == 1 else given

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=1)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Spell them out, in place."""
        args = list(match.anchor.args)
        for index, wanted in sorted(match.data.items()):
            if index < len(args):
                args[index] = wanted
            else:
                args.append(wanted)
        match.anchor.args = tuple(args)
        return verdict
