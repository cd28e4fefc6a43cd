# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard findings`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from etvk_guard import contract
from etvk_guard.cli._text import SEVERITY_STYLE, console, fail, print_json, styled

__all__ = ["findings"]


def findings(
    codes: Annotated[
        list[str] | None, typer.Argument(metavar="[CODE...]", help="EG101, say; else all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain codes: of findings, and of files that cannot be read or written.

    Errors of the reference interpreter (EG4xx) and of the runtime (EG5xx) carry their advice.
    """
    wanted = {code.upper() for code in codes or ()}
    rows = [row for row in contract.findings() if not wanted or row.code in wanted]
    errors = [row for row in contract.errors() if not wanted or row.code in wanted]
    unknown = wanted - {row.code for row in rows} - {row.code for row in errors}
    if unknown:
        fail(f"no such code: {', '.join(sorted(unknown))}; `etvk-guard findings` lists them")
    if as_json:
        found = [asdict(row) for row in rows]
        print_json({"findings": found, "errors": [asdict(row) for row in errors]})
        return
    out = console()
    for row in rows:
        head = (row.code, f"bold {SEVERITY_STYLE[row.severity]}")
        out.print(styled(head, f" {row.name} ({row.severity}, stock: {row.stock}): {row.title}"))
        out.print(styled(f"      {row.explain} {row.advice}"))
    for error in errors:
        out.print(styled((error.code, "bold"), f" {error.name} (error): {error.title}"))
        out.print(styled(f"      {error.explain} {error.advice}"))
