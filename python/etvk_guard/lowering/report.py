# SPDX-License-Identifier: Apache-2.0
"""The record of what a guarded lowering decided, site by site."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table
from torch.fx import Node

from etvk_guard.lowering.graph import module_path
from etvk_guard.lowering.site import Decision

__all__ = ["Entry", "LoweringReport"]

_LOGGER = logging.getLogger("etvk_guard.lowering")

_COLUMNS = ("#", "site", "rule", "form", "decision", "ops", "reason")


@dataclass
class Entry:
    """One decision.

    Attributes:
        program: counts the programs (methods) that were lowered with this report, from 0.
        site: path of the source module, such as "layers.0.norm"; the node's name if unknown.
        node: name of the node that the decision is about.
        rule: the rule family; "audit" for ops that no rule rewrites.
        form: what was found.
        decision: what was decided.
        reason: why not more, with the culprit; empty where nothing better is possible.
        ops_before: ops of the site as exported.
        ops_after: ops of the site in the lowered program.
    """

    program: int
    site: str
    node: str
    rule: str
    form: str
    decision: Decision
    reason: str
    ops_before: int
    ops_after: int

    def __str__(self) -> str:
        """One line for the log."""
        why = f": {self.reason}" if self.reason else ""
        return (
            f"{self.site}: {self.rule}: {self.form}: {self.decision.value}{why} "
            f"({self.ops_before} -> {self.ops_after} ops)"
        )


@dataclass
class LoweringReport:
    """Every decision of one partitioner, or of one `guard()`, in order.

    Printing it gives a table. A line for each entry goes to the logger "etvk_guard.lowering", at
    level INFO, or WARNING for what was left to the CPU.
    """

    entries: list[Entry] = field(default_factory=list)
    programs: int = 0

    def add(self, entry: Entry) -> None:
        """Record one decision."""
        self.entries.append(entry)

    def record(
        self,
        node: Node,
        rule: str,
        form: str,
        decision: Decision,
        reason: str,
        ops: tuple[int, int],
        program: int | None = None,
    ) -> Entry:
        """Record a decision about a node, and its place in the model."""
        number = max(self.programs - 1, 0) if program is None else program
        site = module_path(node) or node.name
        entry = Entry(number, site, node.name, rule, form, decision, reason, *ops)
        self.add(entry)
        return entry

    def log(self, entry: Entry) -> None:
        """Write one decision to the log."""
        level = logging.WARNING if entry.decision is Decision.CPU else logging.INFO
        _LOGGER.log(level, "%s", entry)

    def clear(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self.programs = 0

    def count(self, decision: Decision) -> int:
        """How many sites were decided so."""
        return sum(entry.decision is decision for entry in self.entries)

    @property
    def needs_guarded_runtime(self) -> bool:
        """Whether the program needs this project's op builders to run."""
        return self.count(Decision.KEPT) > 0

    def to_dict(self) -> dict[str, Any]:
        """The report in plain values, for JSON."""
        entries = [{**asdict(e), "decision": e.decision.value} for e in self.entries]
        return {
            "programs": self.programs,
            "needs_guarded_runtime": self.needs_guarded_runtime,
            "entries": entries,
        }

    def to_json(self, indent: int | None = None) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def __len__(self) -> int:
        """How many decisions there are."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        """The decisions, in order."""
        return iter(self.entries)

    def __rich__(self) -> Table:
        """The report as a table of rich."""
        table = Table(title="etvk-guard lowering", title_justify="left")
        for column in _COLUMNS:
            table.add_column(column, overflow="fold")
        for number, entry in enumerate(self.entries):
            ops = f"{entry.ops_before} -> {entry.ops_after}"
            cells = (entry.site, entry.rule, entry.form, entry.decision.value, ops, entry.reason)
            table.add_row(str(number), *cells)
        return table

    def __str__(self) -> str:
        """The report as a table in plain text."""
        if not self.entries:
            return "etvk-guard lowering: no site"
        stream = io.StringIO()
        Console(file=stream, width=160, color_system=None).print(self.__rich__())
        return stream.getvalue().rstrip()
