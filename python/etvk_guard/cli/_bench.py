# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard bench`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from etvk_guard.cli._text import fail

__all__ = ["bench"]

HARNESS = "etvk-guard-kernels"
VARIABLE = "ETVK_GUARD_KERNELS"


def bench(
    devices: Annotated[bool, typer.Option("--devices", help="Only list the devices.")] = False,
    device: Annotated[
        str, typer.Option(metavar="N|NAME", help="Number, or part of the name.")
    ] = "0",
    shapes: Annotated[
        list[str] | None, typer.Option("--shape", metavar="RxD", help="Rows x width.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the first shapes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time the norm kernels on a Vulkan device, beside a plain scheme and a device copy.

    Needs no ExecuTorch, but the kernel harness, which CMake builds with -DETVK_GUARD_HARNESS=ON.

    Exit code: 0, 1 if a kernel failed, 2 if there was an error.
    """
    command = [_harness()]
    if devices:
        command.append("--list")
    else:
        command += ["--bench", "--device", device]
        command += [part for shape in shapes or () for part in ("--shape", shape)]
        command += ["--quick"] if quick else []
    command += ["--json"] if as_json else []
    try:
        code = subprocess.run(command).returncode
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}")
    if code < 0:
        fail(f"{command[0]} was ended by signal {-code}")
    raise typer.Exit(code)


def _harness() -> str:
    """The harness: what the environment names, what the package holds, or what is on the path."""
    if named := os.environ.get(VARIABLE):
        return named
    packaged = Path(__file__).resolve().parents[1] / "bin" / HARNESS
    found = str(packaged) if packaged.is_file() else shutil.which(HARNESS)
    if found is None:
        fail(
            f"there is no {HARNESS}: build it (cmake -DETVK_GUARD_HARNESS=ON) and put it on the "
            f"path, or name it in {VARIABLE}"
        )
    return found
