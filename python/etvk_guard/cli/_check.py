# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard check`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from etvk_guard import pte
from etvk_guard.cli._files import NothingFoundError, expand
from etvk_guard.cli._text import (
    console,
    count,
    error_line,
    finding_lines,
    plain,
    print_json,
    styled,
)

__all__ = ["check"]

REMOTE_WORKERS = 32


@dataclass(frozen=True)
class Outcome:
    """A file's report, or the line that says why there is none."""

    file: str
    report: pte.Report | None = None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """One of the files of `--json`."""
        if self.report is not None:
            return {**self.report.to_json(), "file": self.file}
        return {"file": self.file, "error": self.error, "findings": [], "delegates": []}


def check(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files, folders, patterns and URLs.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print errors only.")] = False,
) -> None:
    """Hold programs against the prepack contract.

    `etvk-guard findings CODE` explains a code. Exit code: 0 all are clean, 1 there are findings (of
    any severity), 2 there was an error.
    """
    items = expand(files)
    with _progress(len(items), quiet) as advance:
        outcomes = _check_all(items, advance)
    if as_json:
        print_json({"files": [outcome.to_json() for outcome in outcomes]})
    else:
        _print(outcomes, quiet)
    raise typer.Exit(_exit_code(outcomes))


def _check_all(
    items: list[str | tuple[str, NothingFoundError]], advance: Callable[[], None]
) -> list[Outcome]:
    def one(item: str | tuple[str, NothingFoundError]) -> Outcome:
        outcome = _check_one(item)
        advance()
        return outcome

    if len(items) == 1:
        return [one(items[0])]
    with ThreadPoolExecutor(min(len(items), _workers(items))) as pool:
        return list(pool.map(one, items))


def _workers(items: list[str | tuple[str, NothingFoundError]]) -> int:
    """Threads: of files, as many as the machine has; of URLs, which only wait, more."""
    if any(pte.is_url(item) for item in items):
        return REMOTE_WORKERS
    return min(os.cpu_count() or 1, 16)


def _check_one(item: str | tuple[str, NothingFoundError]) -> Outcome:
    if isinstance(item, tuple):
        return Outcome(item[0], error=plain(f"{item[0]}: {item[1]}"))
    try:
        return Outcome(item, pte.check(item))
    except pte.EtvkGuardError as error:
        return Outcome(item, error=error_line(item, error))


def _exit_code(outcomes: list[Outcome]) -> int:
    if any(outcome.report is None for outcome in outcomes):
        return 2
    return int(any(outcome.report and not outcome.report.clean for outcome in outcomes))


def _print(outcomes: list[Outcome], quiet: bool) -> None:
    out, err = console(), console(stderr=True)
    for outcome in outcomes:
        if outcome.report is None:
            err.print(styled(("error: ", "bold red"), outcome.error or ""))
        elif not quiet:
            out.print(_headline(outcome.file, outcome.report))
            for finding in outcome.report.findings:
                for line in finding_lines(finding):
                    out.print(line)
    if not quiet and any(o.report and any(f.fixable for f in o.report.findings) for o in outcomes):
        out.print("`etvk-guard repair FILE -o OUT` writes a program that stock delegates run.")


def _headline(file: str, report: pte.Report) -> Any:
    graphs = [delegate for delegate in report.delegates if delegate.sha256 is not None]
    ops = sum(len(delegate.ops) for delegate in graphs)
    scope = f"{count(len(graphs), 'Vulkan delegate')}, {count(ops, 'op')}"
    if report.clean:
        return styled((file, "bold"), ": ", ("clean", "green"), f" ({scope})")
    fixable = sum(finding.fixable for finding in report.findings)
    found = count(len(report.findings), "finding")
    return styled((file, "bold"), ": ", (found, "red"), f", {fixable} fixable ({scope})")


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr, if that is a terminal and there is more than one file."""
    if quiet or total < 2 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("checking", total=total)
        yield lambda: progress.advance(task)
