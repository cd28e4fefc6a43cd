# SPDX-License-Identifier: Apache-2.0
"""Embeddings whose table is a run-time value.

`aten.embedding` on ET-VK prepacks its table. `aten.index_select` takes rows of a run-time one, by a
list of indices, from a texture; its runtime does not resize, so all sizes must be static.
"""

from __future__ import annotations

from math import prod
from typing import Any, cast

from torch.fx import Node

from etvk_guard.lowering.graph import GraphEditor, dims, edge, is_op, shape_of, static
from etvk_guard.lowering.site import Decision, Match, Verdict, View

__all__ = ["RuntimeEmbedding"]


class RuntimeEmbedding:
    """The rule."""

    name = "runtime_embedding"

    def pattern(self, node: Node, view: View) -> Match | None:
        """An embedding of a table that is no constant, and cannot be made one."""
        if not is_op(node, edge.embedding.default) or view.constants.known(node.args[0]):
            return None
        return Match(node, [node], "embedding of a run-time table", None)

    def check(self, match: Match, view: View) -> Verdict:
        """Rewritten, if textures are large enough."""
        table, indices = cast("tuple[Node, Node]", match.anchor.args[:2])
        reason = f"table `{table.name}` {dims(table)} is a run-time value"
        reason += f", from {view.constants.culprit(table)}"
        sizes = [*(shape_of(table) or ()), *(shape_of(indices) or ())]
        if not all(map(static, sizes)):
            return Verdict(Decision.CPU, f"{reason}, and sizes are dynamic", after=1)
        rows, width = cast("list[int]", sizes[:2])
        count = prod(cast("list[int]", sizes[2:]))
        if not all(view.fits_texture([1, 1, height, width]) for height in (rows, count)):
            return Verdict(Decision.CPU, f"{reason}, and too large for a texture", after=1)
        views = 2 if len(sizes) != 3 else 0
        return Verdict(Decision.REWRITTEN, reason, after=1 + views)

    def rewrite(self, match: Match, verdict: Verdict, view: View, editor: GraphEditor) -> Verdict:
        """Put the selection in."""
        old, rule = match.anchor, self.name
        table, indices = cast("tuple[Node, Node]", old.args[:2])
        shape = cast("tuple[int, ...]", shape_of(indices))

        def call(op: Any, *args: Any) -> Node:
            return editor.call(op, args, old, rule)

        with editor.graph.inserting_before(old):
            flat = (
                indices if len(shape) == 1 else call(edge.view_copy.default, indices, [prod(shape)])
            )
            out = call(edge.index_select.default, table, 0, flat)
            if len(shape) != 1:
                width = cast("tuple[int, ...]", shape_of(table))[1]
                out = call(edge.view_copy.default, out, [*shape, width])
        editor.replace(old, out)
        return verdict
