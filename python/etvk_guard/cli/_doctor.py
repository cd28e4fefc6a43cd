# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard doctor`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from etvk_guard import __version__, pte
from etvk_guard.cli._text import console, print_json, styled

if TYPE_CHECKING:
    from etvk_guard.runtime import VulkanDevice, VulkanStatus

__all__ = ["doctor"]


def doctor(
    backend: Annotated[
        str | None, typer.Option(metavar="LIB", help="As ETVK_GUARD_BACKEND: the delegate.")
    ] = None,
    builder: Annotated[
        str | None, typer.Option(metavar="LIB", help="As ETVK_GUARD_BUILDER: the op builder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what there is to run Vulkan programs with, and what to do next.

    Exit code: 0 programs run on a Vulkan device, guarded; 1 something is missing; 2 an error.
    """
    from etvk_guard import runtime

    devices = runtime.vulkan_devices()
    status, problem = _enable(backend, builder)
    advice = _advice(status, problem, devices)
    if as_json:
        print_json(
            {
                "versions": _versions(),
                "executorch": _executorch_place(),
                "delegate": None if status is None else asdict(status),
                "devices": [asdict(device) for device in devices],
                "error": problem,
                "next": advice,
            }
        )
    else:
        _print(status, problem, devices, advice)
    ready = status is not None and status.guarded and bool(devices)
    raise typer.Exit(0 if ready else 2 if problem and (backend or builder) else 1)


def _enable(backend: str | None, builder: str | None) -> tuple[VulkanStatus | None, str | None]:
    from etvk_guard import runtime

    try:
        return runtime.enable_vulkan(backend, builder), None
    except pte.EtvkGuardError as error:
        return None, str(error)


def _versions() -> dict[str, str | None]:
    return {
        "etvk-guard": __version__,
        "python": platform.python_version(),
        "executorch": _version("executorch"),
        "torch": _version("torch"),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _executorch_place() -> str | None:
    spec = importlib.util.find_spec("executorch")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return str(Path(places[0])) if places else None


def _advice(
    status: VulkanStatus | None, problem: str | None, devices: tuple[VulkanDevice, ...]
) -> list[str]:
    advice = []
    if problem is not None:
        advice.append(problem)
    elif status is not None and not status.available:
        advice.append(
            "Bring a Vulkan delegate: build ExecuTorch with -DEXECUTORCH_BUILD_VULKAN=ON and name "
            "the library in ETVK_GUARD_BACKEND (docs/runtime.md). Until then programs run in the "
            "reference interpreter."
        )
    elif status is not None and not status.guarded:
        advice.append(
            "Build libetvk_guard_vulkan.so for this delegate and name it in ETVK_GUARD_BUILDER "
            "(docs/runtime.md). Until then use guard='repair', or `etvk-guard repair`."
        )
    if not devices:
        advice.append(
            "Install a Vulkan driver; a CPU driver will do: `apt install mesa-vulkan-drivers`."
        )
    return advice or ["Nothing: programs run on the Vulkan delegate, guarded."]


def _print(
    status: VulkanStatus | None,
    problem: str | None,
    devices: tuple[VulkanDevice, ...],
    advice: list[str],
) -> None:
    out = console()
    versions = ", ".join(f"{name} {version or 'none'}" for name, version in _versions().items())
    rows: list[tuple[str, Any, bool]] = [
        ("versions", versions, True),
        ("executorch", _executorch_place() or "not installed", _executorch_place() is not None),
        ("delegate", _delegate_line(status), bool(status and status.available)),
        ("builder", _builder_line(status), bool(status and status.guarded)),
    ]
    found = [f"{device.name}, {device.kind}, Vulkan {device.api_version}" for device in devices]
    rows += [("device", line, True) for line in found] or [("device", "none found", False)]
    for name, text, good in rows:
        out.print(styled((f"{name:<11}", "bold"), (text, "" if good else "yellow")))
    for line in advice:
        out.print(styled(("next       ", "bold"), line))


def _delegate_line(status: VulkanStatus | None) -> str:
    if status is None or not status.available:
        return "none"
    return status.backend or "built into executorch"


def _builder_line(status: VulkanStatus | None) -> str:
    if status is None or status.builder is None:
        return "none"
    return f"{status.builder.message} ({status.builder_path})"
