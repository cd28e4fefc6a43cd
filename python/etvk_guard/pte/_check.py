# SPDX-License-Identifier: Apache-2.0
"""What is wrong in a program, and what its delegates run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from etvk_guard import _native
from etvk_guard.pte._sources import Source, SourceReader, open_source

__all__ = ["DelegateSummary", "Finding", "Report", "check"]

Severity = Literal["error", "warning", "info"]
Stock = Literal["abort", "wrong", "none"]


@dataclass(frozen=True)
class Finding:
    """An argument of an op that breaks the contract, or an op that the contract does not know.

    Attributes:
        code: such as "EG101"; `etvk-guard findings` lists them.
        name: such as "norm-weight-runtime".
        severity: "error", "warning" or "info".
        method: name of the method.
        delegate: index in the method's delegates.
        op_index: index in the delegate's graph.
        op: name of the op.
        argument: name of the argument in the contract.
        offset: bytes from the start of the file to the op.
        message: what is wrong, with the shapes, dtypes and values that show it.
        stock: what a stock delegate does: "abort" while loading, "wrong" values, or "none".
        fixable: whether `repair` has a rewrite for it.
    """

    code: str
    name: str
    severity: Severity
    method: str | None
    delegate: int | None
    op_index: int | None
    op: str | None
    argument: str | None
    offset: int | None
    message: str
    stock: Stock
    fixable: bool

    def to_json(self) -> dict[str, Any]:
        """The finding as `etvk-guard check --json` prints it."""
        keys = ("code", "severity", "method", "delegate", "op_index", "op", "argument", "message")
        return {key: getattr(self, key) for key in (*keys, "stock", "fixable")}


@dataclass(frozen=True)
class DelegateSummary:
    """One delegate of one method.

    Attributes:
        method: name of the method.
        delegate: index in the method's delegates.
        backend: such as "VulkanBackend".
        ops: names of the graph's ops in order; empty for another backend.
        sha256: of the VkGraph flatbuffer, in hex; None for another backend.
    """

    method: str
    delegate: int
    backend: str
    ops: tuple[str, ...]
    sha256: str | None

    def to_json(self) -> dict[str, Any]:
        """The delegate as `etvk-guard check --json` prints it."""
        named = {"method": self.method, "delegate": self.delegate}
        return {**named, "ops": list(self.ops), "sha256": self.sha256}


@dataclass(frozen=True)
class Report:
    """What `check` found in a program."""

    file: str | None
    findings: tuple[Finding, ...]
    delegates: tuple[DelegateSummary, ...]

    @property
    def clean(self) -> bool:
        """Whether there is no finding at all, not even an informational one."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The report as one of the files that `etvk-guard check --json` prints."""
        return {
            "file": self.file,
            "error": None,
            "findings": [finding.to_json() for finding in self.findings],
            "delegates": [delegate.to_json() for delegate in self.delegates],
        }


def check(src: Source) -> Report:
    """Hold every op of every Vulkan delegate in a `.pte` against the prepack contract.

    Reads the headers, the flatbuffers and the Vulkan graphs, never the weights, and runs without
    the interpreter's lock.

    Args:
        src: a path, a URL that fsspec knows (`pip install 'etvk-guard[remote]'`; a few small ranges
            are fetched), a bytes-like object (not copied), a seekable binary file, or an object
            with `size` and `read(offset, size)`.

    Raises:
        EtvkGuardError: `src` cannot be read, or is not a valid program.
    """
    reader = open_source(src)
    with reader.named():
        return report_of(reader, _native.Program(reader.native))


def report_of(reader: SourceReader, program: _native.Program) -> Report:
    """The report of a program that was opened from `reader`."""
    findings, delegates = _native.check(program)
    return Report(
        reader.name,
        findings_of(findings),
        tuple(DelegateSummary(*row[:-1], _sha256(row[-1])) for row in delegates),
    )


def findings_of(rows: Iterable[tuple[Any, ...]]) -> tuple[Finding, ...]:
    """Findings from the native rows, whose fields are in the same order."""
    return tuple(Finding(*row) for row in rows)


def _sha256(graph: memoryview | None) -> str | None:
    if graph is None:
        return None
    from hashlib import sha256  # a quarter of the package's import time

    return sha256(graph).hexdigest()
