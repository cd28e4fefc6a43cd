# SPDX-License-Identifier: Apache-2.0
"""The prepack contract: what each op of ExecuTorch's Vulkan delegate wants to be a constant.

One table, `table.json`, read here, by the C++ core (as a generated header), by the docs
(`docs/findings.md`) and by the tests. It names every op that a known release of the delegate's
runtime registers, and each argument that the op's builder copies to the GPU once, while a method
loads ("prepacks"): the condition on it, what breaking the condition does on a stock delegate, and
the rewrite that repairs it. The source of a row is the op's builder in
`backends/vulkan/runtime/graph/ops/impl` of the releases that the row names.

Needs only the standard library. Everything returned is immutable, and made once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

__all__ = [
    "ErrorInfo",
    "Finding",
    "FindingInfo",
    "MissingOp",
    "OpInfo",
    "PrepackRow",
    "error",
    "errors",
    "finding",
    "findings",
    "known_ops",
    "missing_ops",
    "op",
    "releases",
    "rows",
]

Severity = Literal["error", "warning", "info"]
Stock = Literal["abort", "wrong", "none"]
Breaking = Literal["runtime", "shape", "none", "mutable"]

_TABLE = Path(__file__).with_name("table.json")


@dataclass(frozen=True)
class ErrorInfo:
    """A reason for which a file cannot be read or written at all."""

    code: str
    name: str
    title: str
    explain: str
    advice: str


@dataclass(frozen=True)
class FindingInfo:
    """A kind of fault in a program that can be read.

    `stock` is what a stock delegate does with it: it aborts while the method loads, or gives
    silently wrong values, or neither. `repair` says what a repair puts in its place inside a file;
    None where there is no repair yet. Whether one site can be repaired is for the planner to say.
    """

    code: str
    name: str
    severity: Severity
    stock: Stock
    repair: str | None
    title: str
    explain: str
    advice: str


Finding = FindingInfo


@dataclass(frozen=True)
class PrepackRow:
    """One argument that an op prepacks.

    Attributes:
        op: the op's name as a VkGraph's `OperatorCall` has it.
        arg: index into `OperatorCall.args`, which holds the arguments of the op's schema and then
            its result.
        condition: "constant" (a serialized tensor), or "row-constant" (also: D elements with a last
            dim of D, where D is the last dim of the op's first argument).
        none_ok: whether None is legal.
        broken: the finding's code for each way to break the condition that the op can meet:
            "runtime" (computed while running), "shape", "none" and "mutable" (a buffer that the
            program writes).
        rewrite: the repair inside a file, if there is one.
        lowering: the rule of guarded lowering that keeps the op's result in the delegate when the
            argument is a run-time value; None: the op is left to the CPU. What is computed from
            constants is evaluated for every op.
        builder: whether this project's op builder takes a run-time value.
        releases: release -> what stock does with a run-time value: "abort", "wrong" or "none".
            A release that does not register the op is absent.
        note: what else the builder asks or assumes; often empty.
    """

    op: str
    arg: int
    name: str
    condition: Literal["constant", "row-constant"]
    none_ok: bool
    broken: Mapping[Breaking, str]
    rewrite: str | None
    releases: Mapping[str, Stock]
    note: str = ""
    lowering: str | None = None
    builder: bool = False


@dataclass(frozen=True)
class OpInfo:
    """An op that a known release of the runtime registers.

    Attributes:
        name: as a VkGraph's `OperatorCall` has it.
        args: what `OperatorCall.args` holds, in order; the last is the result.
        since: the first release that registers it.
        releases: which of `releases()` register it.
        prepack: its rows, in order of argument.
        either: arguments without a row that may be constants as well as run-time values. All other
            tensors must be run-time values, where a constant makes stock throw.
        writes: arguments that the op writes in place.
        integers: numbers that the op's builder reads as integers: one that is stored as a float
            makes stock throw, or is left out.
        symbolic: lists of numbers that may hold a size which is known only while running; in any
            other list one makes stock throw.
        note: what else the builder asks or assumes; often empty.
    """

    name: str
    args: tuple[str, ...]
    since: str
    releases: tuple[str, ...]
    prepack: tuple[PrepackRow, ...]
    either: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    symbolic: tuple[int, ...] = ()
    integers: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class MissingOp:
    """An op that none of `releases()` registers, so that each of them aborts on it.

    Attributes:
        name: as a VkGraph's `OperatorCall` has it.
        since, until: the first and the last older release that registered it; None if none did.
        lowered_by: the releases whose lowering accepts it all the same.
    """

    name: str
    since: str | None
    until: str | None
    lowered_by: tuple[str, ...]


def releases() -> tuple[str, ...]:
    """The releases of ExecuTorch that the table covers, oldest first."""
    return tuple(_raw()["releases"])


def errors() -> tuple[ErrorInfo, ...]:
    """Every file error, in order of code."""
    return tuple(_errors().values())


def error(code: str) -> ErrorInfo:
    """The file error with this code ("EG004"). Raises KeyError for a code that is none."""
    return _errors()[code]


def findings() -> tuple[FindingInfo, ...]:
    """Every kind of finding, in order of code."""
    return tuple(_findings().values())


def finding(code: str) -> FindingInfo:
    """The kind of finding with this code ("EG101"). Raises KeyError for a code that is none."""
    return _findings()[code]


def known_ops() -> tuple[str, ...]:
    """The name of every op that some known release registers, sorted."""
    return tuple(_ops())


def missing_ops() -> tuple[MissingOp, ...]:
    """Ops that no known release registers, though lowering or an older release has them, sorted."""
    return _missing()


def op(name: str) -> OpInfo | None:
    """What the contract knows of an op, or None if no known release registers it."""
    return _ops().get(name)


def rows(op: str | None = None) -> tuple[PrepackRow, ...]:
    """The rows of one op in order of argument, or of all ops; none for an op that has no row."""
    if op is None:
        return _rows()
    info = _ops().get(op)
    return () if info is None else info.prepack


@cache
def _raw() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table


@cache
def _errors() -> dict[str, ErrorInfo]:
    return {row["code"]: ErrorInfo(**row) for row in _raw()["errors"]}


@cache
def _findings() -> dict[str, FindingInfo]:
    return {row["code"]: FindingInfo(**row) for row in _raw()["findings"]}


@cache
def _ops() -> dict[str, OpInfo]:
    ops = _raw()["ops"]
    return {name: _op(name, ops[name]) for name in sorted(ops)}


@cache
def _rows() -> tuple[PrepackRow, ...]:
    return tuple(row for info in _ops().values() for row in info.prepack)


@cache
def _missing() -> tuple[MissingOp, ...]:
    return tuple(
        MissingOp(name, row["since"], row["until"], tuple(row["lowered_by"]))
        for name, row in sorted(_raw()["missing"].items())
    )


def _op(name: str, entry: dict[str, Any]) -> OpInfo:
    return OpInfo(
        name=name,
        args=tuple(entry["args"]),
        since=entry["since"],
        releases=tuple(entry["releases"]),
        prepack=tuple(_row(name, row) for row in entry["prepack"]),
        either=tuple(entry.get("either", ())),
        writes=tuple(entry.get("writes", ())),
        symbolic=tuple(entry.get("symbolic", ())),
        integers=tuple(entry.get("integers", ())),
        note=entry.get("note", ""),
    )


def _row(name: str, row: dict[str, Any]) -> PrepackRow:
    frozen = {key: MappingProxyType(row[key]) for key in ("broken", "releases")}
    return PrepackRow(op=name, **{**row, **frozen})
