# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions of images with padding, by kernels that are neither 3x3 nor 5x5.

Stock's general shader of these stops a row of the kernel where the image ends, but goes on counting
the kernel's elements: at the right edge, every later row is taken from the wrong place. Without
padding nothing is cut off, so the image is padded before.
"""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from etvk_guard.contract.convolutions import pair
from etvk_guard.lowering.graph import GraphEditor, arg, edge, op_name, shape_of
from etvk_guard.lowering.limits import convolution
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["DepthwiseEdge"]

_STRIDE, _PADDING, _DILATION, _OUTPUT_PADDING = 3, 4, 5, 7


class DepthwiseEdge:
    """The rule."""

    name = "depthwise_edge"

    def pattern(self, node: Node, view: View) -> Match | None:
        """A depthwise convolution whose kernel is cut off at the right edge."""
        call = convolution(node)
        if call is None or not call.cut_kernel():
            return None
        if edge.constant_pad_nd.default not in view.supported or len(shape_of(node) or ()) != 4:
            return None
        if view.runs is not None and not view.runs(node):
            return None
        kernel = "x".join(map(str, call.weight[2:]))
        return Match(node, [node], f"depthwise {op_name(node)} of {kernel}, padded")

    def check(self, match: Match, view: View) -> Verdict:
        """Always rewritten."""
        return Verdict(Decision.REWRITTEN, after=2)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Pad first, then convolve without padding."""
        node = match.anchor
        height, width = pair(arg(node, _PADDING, "padding"))
        with editor.graph.inserting_before(node):
            pads: tuple[Any, ...] = (node.args[0], [width, width, height, height], 0.0)
            padded = editor.call(edge.constant_pad_nd.default, pads, node, self.name)
            args: list[Any] = list(node.args)
            args[0], args[_PADDING] = padded, [0, 0]
            for place in (_STRIDE, _DILATION, _OUTPUT_PADDING):
                args[place] = pair(args[place])
            out = editor.call(edge.convolution.default, args, node, self.name)
        editor.replace(node, out)
        return verdict
