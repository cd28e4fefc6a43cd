# SPDX-License-Identifier: Apache-2.0
"""What is to become of one program, decided while it is partitioned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from etvk_guard.lowering import _compat
from etvk_guard.lowering.audit import audit_node
from etvk_guard.lowering.constants import Constants
from etvk_guard.lowering.graph import op_name
from etvk_guard.lowering.report import LoweringReport
from etvk_guard.lowering.rules import RULES
from etvk_guard.lowering.site import Decision, Match, Rule, Runtime, Verdict, View

__all__ = ["Plan", "Site", "Support"]

TAG_KEY = "delegation_tag"
# ExecuTorch's passes take the fake tensors' mode from the inputs, and fail where there are none.
_SOURCELESS = "the delegate would have no input, which ExecuTorch does not lower"


@dataclass
class Site:
    """A match of a rule, and what was decided about it."""

    rule: Rule
    match: Match
    verdict: Verdict
    allowed: bool = True

    @property
    def claims(self) -> set[Node]:
        """The calls that must go to one delegate together for the rewrite to be possible."""
        return {*self.match.nodes, *self.verdict.claims}

    def tags(self) -> set[str | None]:
        """The delegates that its calls were given to; None stands for the CPU."""
        return {node.meta.get(TAG_KEY) for node in self.claims}


class Plan:
    """The sites of one program, and the ops that must stay out of the delegate.

    Args:
        program: the program to be partitioned; its weights are fake tensors.
        runtime: for which runtime it is lowered.
    """

    def __init__(self, program: ExportedProgram, runtime: Runtime) -> None:
        """An empty plan; `find` fills it."""
        self.program = program
        self.runtime = runtime
        self.view = View(Constants(program), runtime, _compat.vulkan_supported_ops)
        self.sites: list[Site] = []
        self.kept_out: dict[Node, str] = {}
        self._claimed: dict[Node, list[Site]] = {}
        self._breaches: dict[Node, str] = {}
        self._dropped: set[Node] = set()
        self._apart: set[Node] = set()
        self._sourceless: set[Node] = set()

    def find(self, stock: Any) -> None:
        """Find the sites and the breaches, given stock's own idea of what the delegate runs."""
        self.sites.clear()
        self.kept_out.clear()
        self._claimed.clear()
        self._breaches.clear()
        calls = [n for n in self.program.graph_module.graph.nodes if n.op == "call_function"]
        fused = stock.fusable_nodes
        constants = self.view.constants
        if fused or self._apart:
            constants = Constants(self.program, fused | self._apart)
        self.view = View(
            constants,
            self.runtime,
            _compat.vulkan_supported_ops,
            lambda node: bool(stock.is_node_supported({}, node)),
            tuple(stock.texture_limits),
        )
        for rule in RULES:
            for node in calls:
                if node in fused or node in self._claimed or node in self._dropped:
                    continue
                match = rule.pattern(node, self.view)
                if match is not None:
                    self._add(rule, match, stock)
        rewritten = {s.match.anchor for s in self.sites if s.verdict.rewrites and s.allowed}
        for node in calls:
            if node not in fused and node not in rewritten:
                self._audit(node)
        for node in self._sourceless - fused:
            self._breaches.setdefault(node, _SOURCELESS)

    def claimed(self, node: Node) -> list[Site]:
        """The sites whose rewrite takes a call."""
        return self._claimed.get(node, [])

    def breach(self, node: Node) -> str:
        """Why a call must stay out of the delegate; "" if it need not."""
        return self._breaches.get(node, "")

    def settle(self) -> bool:
        """Deal with the sites that the partition tore apart. True if there are none.

        Constants that are computed in another delegate, or on the CPU, come from there: for the
        next round they are run-time values. Any other site is dropped. A delegate without inputs is
        given up.
        """
        torn = [s for s in self.sites if s.verdict.rewrites and len(s.tags()) > 1]
        for site in torn:
            computed = set(filter(self.view.constants.computed, site.verdict.claims))
            if computed:
                self._apart |= computed
            else:
                self._dropped.add(site.match.anchor)
        sourceless = self._without_inputs()
        self._sourceless |= sourceless
        return not torn and not sourceless

    def _without_inputs(self) -> set[Node]:
        """The calls of delegates that take nothing but numbers which the model itself holds."""
        parts: dict[str, set[Node]] = {}
        for node in self.program.graph_module.graph.nodes:
            if node.op == "call_function" and TAG_KEY in node.meta:
                parts.setdefault(node.meta[TAG_KEY], set()).add(node)
        return {
            node
            for part in parts.values()
            if not any(
                source not in part and _is_fake(source)
                for member in part
                for source in member.all_input_nodes
            )
            for node in part
        }

    def record(self, report: LoweringReport) -> dict[Node, int]:
        """Write the decisions down. Returns the entry of each anchor that is to be rewritten."""
        stamps: dict[Node, int] = {}
        for site in self.sites:
            verdict, anchor = site.verdict, site.match.anchor
            decision, reason, after = verdict.decision, verdict.reason, verdict.after
            if verdict.rewrites and site.tags() == {None}:
                reason = "the partitioner's options keep it out of the delegate"
                decision, after = Decision.CPU, len(site.match.nodes)
            elif verdict.rewrites:
                stamps[anchor] = len(report.entries)
            before = verdict.before or len(site.claims)
            form, ops = site.match.form, (before, after)
            report.record(
                anchor, site.rule.name, form, decision, reason, ops, program=report.programs
            )
        for node, reason in self.kept_out.items():
            if not any(s.match.anchor is node for s in self.sites):
                form, program = op_name(node), report.programs
                report.record(node, "audit", form, Decision.CPU, reason, (1, 1), program=program)
        report.programs += 1
        return stamps

    def _add(self, rule: Rule, match: Match, stock: Any) -> None:
        site = Site(rule, match, rule.check(match, self.view))
        self.sites.append(site)
        if site.verdict.decision is Decision.CPU:
            self._breaches[match.anchor] = site.verdict.reason
        if not site.verdict.rewrites:
            return
        site.allowed = _allowed(site, stock)
        for node in site.claims:
            self._claimed.setdefault(node, []).append(site)

    def _audit(self, node: Node) -> None:
        if node in self._breaches:
            return
        if any(site.allowed for site in self.claimed(node)):
            return
        breaches = audit_node(node, self.view.constants)
        if breaches:
            self._breaches[node] = "; ".join(breach.reason for breach in breaches)
            self._keep_out_sizes(node)

    def _keep_out_sizes(self, node: Node) -> None:
        """Sizes that a call on the CPU takes are worked out there: a delegate cannot give them."""
        for source in node.all_input_nodes:
            is_size = isinstance(source.meta.get("val"), torch.SymInt)
            if is_size and source.op == "call_function" and source not in self._breaches:
                self._breaches[source] = f"`{node.name}`, which is left to the CPU, takes this size"
                self._keep_out_sizes(source)


def _is_fake(source: Node) -> bool:
    """Whether ExecuTorch's passes see a fake tensor; of a lifted number they see the number."""
    found = source.meta.get("val")
    return isinstance(found, FakeTensor) and getattr(found, "constant", None) is None


def _allowed(site: Site, stock: Any) -> bool:
    """Whether the partitioner's own options let a site into the delegate."""
    for node in site.claims:
        if stock.nn_module_allowlist is not None and not _compat.from_module(
            node, stock.nn_module_allowlist
        ):
            return False
        if stock.nn_module_blocklist is not None and _compat.from_module(
            node, stock.nn_module_blocklist
        ):
            return False
        if node.target in stock.operator_blocklist:
            return False
    return bool(_compat.io_dtypes_are_supported(site.match.anchor))


class Support(OperatorSupportBase):
    """Stock's idea of what the delegate runs, with the plan's in front of it."""

    def __init__(self, stock: Any, plan: Plan) -> None:
        """Fill `plan`, given stock's support for one program."""
        super().__init__()
        self.stock = stock
        self.plan = plan
        plan.find(stock)

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        """Whether a node goes to the delegate."""
        reason = self.plan.breach(node)
        if reason:
            if self.stock.is_node_supported(submodules, node):
                self.plan.kept_out[node] = reason
            return False
        sites = self.plan.claimed(node)
        if any(site.allowed for site in sites):
            return True
        return bool(self.stock.is_node_supported(submodules, node))
