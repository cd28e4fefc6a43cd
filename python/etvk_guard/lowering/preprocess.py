# SPDX-License-Identifier: Apache-2.0
"""Rewrites a delegate's graph, and has stock turn it into a VkGraph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.export import ExportedProgram

from etvk_guard.lowering import _compat
from etvk_guard.lowering.audit import audit_graph
from etvk_guard.lowering.constants import Constants
from etvk_guard.lowering.graph import GraphEditor
from etvk_guard.lowering.graph_builder import TypedGraphBuilder
from etvk_guard.lowering.hook import Pending
from etvk_guard.lowering.passes import PASSES
from etvk_guard.lowering.report import LoweringReport
from etvk_guard.lowering.rules import RULES
from etvk_guard.lowering.site import Decision, Runtime, View
from etvk_guard.lowering.stamps import MARK, SITE_KEY
from etvk_guard.lowering.vkgraph import settle_casts

__all__ = ["preprocess", "rewrite"]

_BY_NAME = {rule.name: rule for rule in RULES}
# Without them a program is as right as with them.
_SAVE_WORK = ("constant_scalar",)


def preprocess(
    pending: Pending,
    original: Callable[..., Any],
    cls: Any,
    program: ExportedProgram,
    compile_specs: list[Any],
) -> Any:
    """Do what `VulkanBackend.preprocess` does, under guard. Returns its `PreprocessResult`.

    Raises:
        LoweringError: the finished graph still has an op that would abort.
    """
    rewrite(program, pending.report, pending.runtime)
    guarded = any(spec.key == MARK for spec in compile_specs)
    serialize = _compat.vulkan_preprocess.serialize_vulkan_graph

    def audited(graph: Any, *args: Any, **kwargs: Any) -> Any:
        settle_casts(graph)
        audit_graph(graph, guarded)
        return serialize(graph, *args, **kwargs)

    names = {
        **PASSES,
        "FusePatternsPass": partial(
            _compat.GuardedFusePatterns, partial(evaluate_left, pending.report)
        ),
        "VkGraphBuilder": TypedGraphBuilder,
        "serialize_vulkan_graph": audited,
    }
    return _compat.rebind(original, names)(cls, program, compile_specs)


def evaluate_left(report: LoweringReport, program: ExportedProgram) -> int:
    """Evaluate, in place, the constants that the delegate cannot compute as stock fused them.

    Whether stock fuses may depend on the values: a weight that fits four bits, say. Returns how
    many were evaluated.
    """
    supported = _compat.vulkan_supported_ops
    view = View(Constants(program), "stock", supported, lambda node: True)
    rule, editor, count = _BY_NAME["constant_value"], GraphEditor(program), 0
    for node in list(program.graph_module.graph.nodes):
        match = rule.pattern(node, view)
        if match is None:
            continue
        verdict = rule.rewrite(match, rule.check(match, view), view, editor)
        report.log(report.record(node, rule.name, match.form, verdict.decision, "", (1, 0)))
        count += 1
    if count:
        editor.finish()
    return count


def rewrite(program: ExportedProgram, report: LoweringReport, runtime: Runtime) -> None:
    """Carry out, in place, what was decided about each stamped site of a delegate's program."""
    order = {rule.name: place for place, rule in enumerate(RULES)}
    stamped = [n for n in program.graph_module.graph.nodes if SITE_KEY in n.meta]
    stamped.sort(key=lambda n: order[report.entries[n.meta[SITE_KEY]].rule])
    if not stamped:
        return
    editor = GraphEditor(program)
    view = View(Constants(program), runtime, _compat.vulkan_supported_ops)
    for node in stamped:
        if not node.users:
            continue  # An earlier rewrite evaluated what used it.
        entry = report.entries[node.meta[SITE_KEY]]
        rule = _BY_NAME[entry.rule]
        match = rule.pattern(node, view)
        if match is None and rule.name in _SAVE_WORK:
            entry.decision, entry.reason = Decision.UNFUSED, "it is used outside of the delegate"
            entry.ops_after = entry.ops_before
            continue
        if match is None:
            raise _compat.LoweringError(f"{entry.site}: {entry.form} is gone from the delegate")
        verdict = rule.check(match, view)
        if verdict.rewrites:
            verdict = rule.rewrite(match, verdict, view, editor)
        if verdict.decision is not entry.decision:
            entry.decision, entry.reason = verdict.decision, verdict.reason
            entry.ops_after = verdict.after
            report.log(entry)
    editor.finish()
