# SPDX-License-Identifier: Apache-2.0
"""Printing for people and for programs.

What comes out of a file is shown with its control characters escaped and never read as markup: a
file cannot write to the terminal.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from etvk_guard.pte import EtvkGuardError, Finding

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = [
    "console",
    "count",
    "error_line",
    "fail",
    "finding_lines",
    "plain",
    "print_json",
    "styled",
]

STOCK = {
    "abort": "a stock delegate aborts while the method loads",
    "wrong": "a stock delegate gives silently wrong values",
    "none": "",
}
SEVERITY_STYLE = {"error": "red", "warning": "yellow", "info": "cyan"}


def plain(text: object) -> str:
    """`text` with every character that is not printable escaped."""
    return "".join(char if char.isprintable() else _escaped(char) for char in str(text))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


def count(number: int, noun: str) -> str:
    """As "1 finding", "2 findings"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def console(stderr: bool = False) -> Console:
    """A console for text as it is: no markup, no emoji, no wrapping where it is no terminal."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)


def styled(*parts: str | tuple[str, str]) -> Text:
    """A line from texts, or pairs of text and style, each of them escaped."""
    from rich.text import Text

    pairs = [part if isinstance(part, tuple) else (part, "") for part in parts]
    return Text.assemble(*((plain(text), style) for text, style in pairs))


def finding_lines(finding: Finding) -> Iterable[Text]:
    """A finding in two lines: where it is, and what it is."""
    style = SEVERITY_STYLE[finding.severity]
    place = f"{finding.method}, delegate {finding.delegate}, op {finding.op_index} {finding.op}"
    argument = f", {finding.argument}" if finding.argument else ""
    yield styled("  ", (finding.code, f"bold {style}"), f" {finding.severity}: ", place + argument)
    tail = f"; {STOCK[finding.stock]}" if STOCK[finding.stock] else ""
    yield styled(f"    {finding.message}{tail}")


def error_line(file: str, error: EtvkGuardError) -> str:
    """An error in one line."""
    return plain(str(error)) if error.file else plain(f"{file}: {error}")


def fail(message: str) -> NoReturn:
    """Print an error and exit with 2."""
    console(stderr=True).print(styled(("error: ", "bold red"), message))
    raise typer.Exit(2)


def print_json(data: Any) -> None:
    """Print JSON that every reader takes: ASCII, and no NaN."""
    json.dump(_finite(data), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    return data
