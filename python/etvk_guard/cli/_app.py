# SPDX-License-Identifier: Apache-2.0
"""The list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from etvk_guard import __version__
from etvk_guard.cli._bench import bench
from etvk_guard.cli._check import check
from etvk_guard.cli._doctor import doctor
from etvk_guard.cli._findings import findings
from etvk_guard.cli._lower import lower
from etvk_guard.cli._repair import repair
from etvk_guard.cli._run import run
from etvk_guard.cli._show import show

__all__ = ["make_app"]

COMMANDS = (check, repair, show, findings, lower, run, doctor, bench)


def make_app() -> typer.Typer:
    """The application with all of its commands."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for command in COMMANDS:
        app.command()(command)
    return app


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"etvk-guard {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Find and repair broken prepack contracts in programs for ExecuTorch's Vulkan delegate."""
