# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from etvk_guard import __version__, pte
from etvk_guard.cli._text import console, print_json, styled

if TYPE_CHECKING:
    from etvk_guard.runtime import VulkanDevice, VulkanStatus

__all__ = ["doctor"]

PACKAGES = ("executorch", "torch", "numpy")


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what this machine has to run Vulkan programs with, and what to do next.

    Exit code: 0 programs run on Vulkan with norms of any kind, 1 something is missing.
    """
    from etvk_guard.runtime import vulkan_devices

    devices = vulkan_devices()
    status, problem = _status()
    steps = list(_next_steps(status, problem, devices))
    if as_json:
        print_json(
            {
                "versions": _versions(),
                "devices": [asdict(device) for device in devices],
                "delegate": None if status is None else asdict(status),
                "problem": problem,
                "next": steps,
            }
        )
    else:
        _print(status, problem, devices, steps)
    raise typer.Exit(1 if steps else 0)


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {
        "etvk-guard": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def _status() -> tuple[VulkanStatus | None, str | None]:
    from etvk_guard.runtime import enable_vulkan

    try:
        return enable_vulkan(), None
    except pte.EtvkGuardError as error:
        return None, str(error)


def _next_steps(
    status: VulkanStatus | None, problem: str | None, devices: tuple[VulkanDevice, ...]
) -> Iterator[str]:
    if problem is not None:
        yield problem
    if not devices:
        yield (
            "Install a Vulkan driver; Debian's and Ubuntu's package mesa-vulkan-drivers has one "
            "that runs on the CPU."
        )
    if status is None:
        return
    if not status.available:
        yield (
            "Bring a Vulkan delegate: build ExecuTorch from source with "
            "EXECUTORCH_BUILD_VULKAN=ON, or name a delegate library in ETVK_GUARD_BACKEND "
            "(docs/runtime.md). Until then programs run in the reference interpreter."
        )
    elif not status.guarded and os.environ.get("ETVK_GUARD", "").lower() == "off":
        yield "Programs run, repaired as they load. ETVK_GUARD=off turns the builder off: unset it."
    elif not status.guarded:
        yield (
            "Programs run, repaired as they load. For norms in one dispatch, build "
            "etvk_guard_vulkan and name it in ETVK_GUARD_BUILDER (docs/runtime.md)."
        )


def _print(
    status: VulkanStatus | None,
    problem: str | None,
    devices: tuple[VulkanDevice, ...],
    steps: list[str],
) -> None:
    out = console()
    for name, version in _versions().items():
        out.print(styled((f"{name}: ", "bold"), version or "not installed"))
    for device in devices:
        text = f"{device.name} ({device.kind}, Vulkan {device.api_version})"
        out.print(styled(("Vulkan device: ", "bold"), text))
    if not devices:
        out.print(styled(("Vulkan device: ", "bold"), "none"))
    if status is not None:
        out.print(styled(("delegate: ", "bold"), _delegate(status)))
        out.print(styled(("builder: ", "bold"), _builder(status)))
        for message in status.messages:
            out.print(styled(f"  {message}"))
    for step in steps:
        out.print(styled(("next: ", "bold yellow"), step))
    if not steps:
        out.print(styled(("everything is in place", "green")))


def _delegate(status: VulkanStatus) -> str:
    if not status.available:
        return "none"
    return status.backend or "built into executorch"


def _builder(status: VulkanStatus) -> Any:
    if status.builder is None:
        return "none"
    return f"{status.builder.state} ({status.builder_path}): {status.builder.message}"
