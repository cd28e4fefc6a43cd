# SPDX-License-Identifier: Apache-2.0
"""The command `etvk-guard`. One command a file; `_app` lists them."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


_ERROR = 2


def main() -> None:
    """Run the command line in `sys.argv`, and exit."""
    from etvk_guard.cli._app import make_app  # typer is needed by nothing else

    try:
        try:
            make_app()(prog_name="etvk-guard")
        finally:
            sys.stdout.flush()
    except OSError as error:  # the output cannot be written: a closed pipe, a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still buffered
        if not isinstance(error, BrokenPipeError):
            print(f"etvk-guard: cannot write the output: {error.strerror}", file=sys.stderr)
        sys.exit(_ERROR)
