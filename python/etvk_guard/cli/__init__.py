# SPDX-License-Identifier: Apache-2.0
"""The command `etvk-guard`. One command a file; `_app` lists them."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line in `sys.argv`, and exit."""
    from etvk_guard.cli._app import make_app  # typer is needed by nothing else

    make_app()(prog_name="etvk-guard")
