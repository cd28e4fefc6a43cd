# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard lower`."""

from __future__ import annotations

import logging
import sys
import warnings
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from etvk_guard import pte
from etvk_guard.cli._text import console, fail, finding_lines, styled

if TYPE_CHECKING:
    from etvk_guard.lowering import LoweringReport

__all__ = ["lower"]


class Runtime(str, Enum):
    """Which delegate has to run the program."""

    STOCK = "stock"
    GUARDED = "guarded"


class ReportFormat(str, Enum):
    """How to print what was decided."""

    JSON = "json"
    TABLE = "table"


def lower(
    file: Annotated[str, typer.Argument(metavar="MODEL.pt2", help="From torch.export.save.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT.pte", help="To write.")],
    runtime: Annotated[Runtime, typer.Option(help="The delegate to lower for.")] = Runtime.STOCK,
    fp16: Annotated[bool, typer.Option("--fp16", help="Compute float32 in half.")] = False,
    report: Annotated[
        ReportFormat | None, typer.Option(help="Print each decision to stdout.")
    ] = None,
) -> None:
    """Lower an exported program for Vulkan so that nothing in it can abort.

    Exit code: 0 written and clean, 1 written but there are findings, 2 there was an error.
    """
    made = _lower(file, output, runtime, fp16)
    if report is ReportFormat.JSON:
        sys.stdout.write(made.to_json(indent=2) + "\n")
    elif report is ReportFormat.TABLE:
        console().print(made, soft_wrap=False)
    checked = pte.check(output)
    err = console(stderr=True)
    err.print(styled((file, "bold"), " -> ", (output, "bold"), f": {_summary(made)}"))
    for finding in checked.findings:
        for line in finding_lines(finding):
            err.print(line)
    raise typer.Exit(int(any(finding.severity != "info" for finding in checked.findings)))


def _lower(file: str, output: str, runtime: Runtime, fp16: bool) -> LoweringReport:
    try:
        from etvk_guard.lowering import lower_file
    except ImportError as error:
        fail(f"lowering needs etvk-guard's extra `lowering`, torch and executorch: {error}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's and executorch's own making
        level = logging.root.manager.disable
        logging.disable(
            logging.ERROR
        )  # a whole traceback of torch's for a file that it cannot read
        try:
            return lower_file(file, output, runtime=runtime.value, fp16=fp16)
        except Exception as error:  # whatever torch and executorch say of a program
            fail(f"{file}: {error}")
        finally:
            logging.disable(level)


def _summary(made: LoweringReport) -> str:
    from collections import Counter

    decisions = Counter(entry.decision.value for entry in made)
    return ", ".join(f"{number} {name}" for name, number in decisions.items()) or "no site"
