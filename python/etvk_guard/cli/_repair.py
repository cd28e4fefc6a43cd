# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard repair`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from etvk_guard import pte
from etvk_guard.cli._text import console, count, error_line, fail, finding_lines, print_json, styled

__all__ = ["repair"]

NOTHING: dict[str, Any] = {
    "output": None,
    "changed": False,
    "repaired": [],
    "remaining": [],
    "added_activation_bytes": 0,
}


def repair(
    file: Annotated[str, typer.Argument(metavar="IN", help="The program; it is not touched.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="File to write.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rewrite what can be rewritten so that a stock delegate runs it.

    An output that exists is replaced; the input never is.

    Exit code: 0 repaired or already clean, 1 something remains, 2 there was an error.
    """
    try:
        result = pte.repair(file, output)
    except pte.EtvkGuardError as error:
        if not as_json:
            fail(error_line(file, error))
        print_json({"file": file, "error": error_line(file, error), **NOTHING})
        raise typer.Exit(2) from None
    if as_json:
        print_json({"file": file, "error": None, **result.to_json()})
    else:
        _print(file, result)
    raise typer.Exit(0 if result.complete else 1)


def _print(file: str, result: pte.RepairResult) -> None:
    out = console()
    found = count(len(result.repaired), "finding")
    left = "nothing that can be repaired" if result.remaining else "nothing to repair"
    done = f"{found} repaired" if result.changed else f"{left}, copied as it is"
    out.print(styled((file, "bold"), " -> ", (result.path or "", "bold"), ": ", (done, "green")))
    for finding in result.repaired:
        for line in finding_lines(finding):
            out.print(line)
    if result.changed:
        added = f"{result.added_activation_bytes:,} bytes"
        out.print(styled(f"activation memory grows by at most {added}"))
    if result.remaining:
        remain = "remains" if len(result.remaining) == 1 else "remain"
        out.print(styled((f"{count(len(result.remaining), 'finding')} {remain}:", "yellow")))
    for finding in result.remaining:
        for line in finding_lines(finding):
            out.print(line)
