# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard findings`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from etvk_guard import contract
from etvk_guard.cli._text import SEVERITY_STYLE, console, print_json, styled

__all__ = ["findings"]


def findings(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the codes of all findings and errors."""
    if as_json:
        found = [asdict(row) for row in contract.findings()]
        print_json({"findings": found, "errors": [asdict(row) for row in contract.errors()]})
        return
    out = console()
    for row in contract.findings():
        head = (row.code, f"bold {SEVERITY_STYLE[row.severity]}")
        out.print(styled(head, f" {row.name} ({row.severity}, stock: {row.stock}): {row.title}"))
        out.print(styled(f"      {row.explain} {row.advice}"))
    for error in contract.errors():
        out.print(styled((error.code, "bold"), f" {error.name} (error): {error.title}"))
        out.print(styled(f"      {error.explain} {error.advice}"))
