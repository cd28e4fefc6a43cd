# SPDX-License-Identifier: Apache-2.0
"""Finding the Vulkan delegate and the builder library, and loading them into the pip runtime."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from etvk_guard.runtime import _errors
from etvk_guard.runtime._builder import Builder, BuilderStatus

__all__ = ["VulkanStatus", "current_builder", "enable_vulkan", "executorch_version", "portable_lib"]

BACKEND: Final = "VulkanBackend"
BACKEND_VARIABLE: Final = "ETVK_GUARD_BACKEND"
BUILDER_VARIABLE: Final = "ETVK_GUARD_BUILDER"
BUILDER_FILE: Final = "libetvk_guard_vulkan.so"
BUILT_FOR: Final = b"etvk-guard: built for executorch "  # in the builder library; a version follows

HAS_DELEGATE: Final = b"etvk-guard: has a delegate of its own"  # in a self-contained library


@dataclass(frozen=True)
class VulkanStatus:
    """What there is, and what `enable_vulkan` did.

    Attributes:
        available: whether the runtime has the delegate, so that Vulkan programs run.
        backend: the library that it is in; None where executorch has it built in, or it is absent.
        builder: what the builder library says of itself; None where there is none.
        builder_path: the builder library; None where there is none.
        executorch: version of the executorch that is installed; None where there is none.
        messages: what was done and what is missing, a sentence each.
    """

    available: bool
    backend: str | None = None
    builder: BuilderStatus | None = None
    builder_path: str | None = None
    executorch: str | None = None
    messages: tuple[str, ...] = ()

    @property
    def guarded(self) -> bool:
        """Whether the patched op builder is in effect."""
        return self.builder is not None and self.builder.active


@dataclass
class _Loaded:
    """What this process has loaded: there can be one delegate, for good."""

    backend: str | None = None
    backend_library: ctypes.CDLL | None = None
    builder: Builder | None = None


_lock = threading.RLock()
_loaded = _Loaded()


def executorch_version() -> str | None:
    """Version of the executorch that is installed, without importing it."""
    try:
        return importlib.metadata.version("executorch")
    except importlib.metadata.PackageNotFoundError:
        return None


def portable_lib() -> Any:
    """The pip runtime's extension module. Must be loaded before any delegate."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "This API is experimental"
            return importlib.import_module("executorch.extension.pybindings.portable_lib")
    except ImportError as problem:
        raise _errors.error(
            _errors.NO_EXECUTORCH, f"executorch cannot be used: {problem}"
        ) from problem


def has_delegate() -> bool:
    """Whether the runtime has the delegate registered now."""
    return BACKEND in portable_lib()._get_registered_backend_names()


def current_builder() -> Builder | None:
    """The builder library that is loaded, or None."""
    return _loaded.builder


def enable_vulkan(
    backend: str | os.PathLike[str] | None = None,
    builder: str | os.PathLike[str] | None = None,
) -> VulkanStatus:
    """Make the pip runtime run Vulkan programs, with norm weights of any kind.

    Uses the delegate that executorch was built with, if there is one. Else loads the library
    `backend`, or the one that ETVK_GUARD_BACKEND names, into the pip runtime. Then loads the
    builder library, unless `backend` has it built in, and puts it into effect: `builder`, or what
    ETVK_GUARD_BUILDER names, or libetvk_guard_vulkan.so beside the backend or in this package.
    ETVK_GUARD=off leaves the delegate as it is. Calling it again changes nothing but what is
    missing. A library that was loaded stays for the life of the process.

    Raises:
        RuntimeFailedError: there is no executorch (EG501), or a library that was asked for is not
            there, cannot be loaded or is no delegate (EG503). What was not asked for and is not
            there is no error: the status says so.
    """
    with _lock:
        messages: list[str] = []
        _find_backend(backend, messages)
        available = has_delegate()
        if available:
            _find_builder(builder, messages)
        active = _loaded.builder
        return VulkanStatus(
            available=available,
            backend=_loaded.backend,
            builder=active.status() if active else None,
            builder_path=active.path if active else None,
            executorch=executorch_version(),
            messages=tuple(messages),
        )


def _find_backend(asked: str | os.PathLike[str] | None, messages: list[str]) -> None:
    chosen = asked if asked is not None else os.environ.get(BACKEND_VARIABLE) or None
    path = None if chosen is None else str(Path(os.fsdecode(chosen)).resolve())
    if has_delegate():
        where = _loaded.backend or "executorch itself"
        messages.append(f"The Vulkan delegate is there already, in {where}.")
        if asked is not None and path != _loaded.backend:
            message = f"{path} cannot be loaded: {where} has registered a Vulkan delegate already"
            raise _errors.error(_errors.BACKEND_LOAD, message)
    elif path is None:
        messages.append(
            "The installed executorch has no Vulkan delegate, and neither the argument `backend` "
            f"nor {BACKEND_VARIABLE} names a library with one."
        )
    else:
        _loaded.backend_library = _load(path, _errors.BACKEND_LOAD)
        if not has_delegate():
            message = f"{path} was loaded, but has registered no {BACKEND}"
            raise _errors.error(_errors.BACKEND_LOAD, message)
        _loaded.backend = path
        messages.append(f"Loaded the Vulkan delegate from {path}.")


def _find_builder(asked: str | os.PathLike[str] | None, messages: list[str]) -> None:
    if _loaded.builder is None:
        _load_builder(asked, messages)
    if _loaded.builder is None:
        return
    status = _loaded.builder.status()
    if status.state == "inactive":
        _loaded.builder.install()
        status = _loaded.builder.status()
    messages.append(f"Builder {_loaded.builder.path}: {status.message}.")
    installed = executorch_version()
    if "unknown" not in (status.executorch, installed) and not _same(status.executorch, installed):
        messages.append(
            f"It was built against the headers of executorch {status.executorch}; {installed} is "
            "installed."
        )


def _same(built: str, installed: str | None) -> bool:
    return installed is not None and built.split("+")[0] == installed.split("+")[0]


def _load_builder(asked: str | os.PathLike[str] | None, messages: list[str]) -> None:
    if asked is None and hasattr(_loaded.backend_library, "etvk_guard_vulkan_install"):
        assert _loaded.backend_library is not None
        _loaded.builder = Builder(_loaded.backend_library, str(_loaded.backend))
        return
    chosen = asked if asked is not None else os.environ.get(BUILDER_VARIABLE) or None
    if chosen is not None:
        path = str(Path(os.fsdecode(chosen)).resolve())
        _loaded.builder = _open_builder(path)
        return
    for path in _usual_places():
        try:
            _loaded.builder = _open_builder(path)
            return
        except _errors.RuntimeFailedError as problem:
            messages.append(problem.problem + ".")
    messages.append(
        f"There is no builder library: neither the argument `builder` nor {BUILDER_VARIABLE} names "
        "one. Programs can still be guarded by repairing them."
    )


def _usual_places() -> list[str]:
    folders = [Path(__file__).resolve().parent.parent / "lib"]
    if _loaded.backend is not None:
        folders.insert(0, Path(_loaded.backend).parent)
    files = [folder / BUILDER_FILE for folder in folders]
    return [str(file) for file in files if file.is_file()]


def _built_for(path: str) -> str:
    """The release of executorch that a builder library says it is for, without loading it."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return "unknown"
    at = data.find(BUILT_FOR)
    end = data.find(b"\0", at)
    return "unknown" if at < 0 else data[at + len(BUILT_FOR) : end].decode("ascii", "replace")


def _refuse_other_release(path: str) -> None:
    """A library of another release would bring a second runtime along, which ends the process."""
    built, installed = _built_for(path), executorch_version()
    if built == "unknown" or installed is None:
        return
    if built.split(".")[:2] != installed.split(".")[:2]:
        message = f"{path} was built for executorch {built}, and {installed} is installed"
        raise _errors.error(_errors.NO_BUILDER, message)


def _refuse_second_delegate(path: str) -> None:
    """A self-contained library beside another delegate would guard its own, which nothing calls."""
    if path == _loaded.backend:
        return
    try:
        data = Path(path).read_bytes()
    except OSError:
        return
    if HAS_DELEGATE in data:
        message = f"{path} has a delegate of its own, and there is one already: give it as the"
        raise _errors.error(_errors.NO_BUILDER, f"{message} delegate ({BACKEND_VARIABLE}) instead")


def _open_builder(path: str) -> Builder:
    _refuse_other_release(path)
    _refuse_second_delegate(path)
    library = _load(path, _errors.NO_BUILDER)
    try:
        return Builder(library, path)
    except AttributeError as problem:
        message = f"{path} is not the builder library of etvk-guard: {problem}"
        raise _errors.error(_errors.NO_BUILDER, message) from problem


def _load(path: str, code: str) -> ctypes.CDLL:
    if not Path(path).is_file():
        is_folder = Path(path).is_dir()
        problem = f"{path} is a folder" if is_folder else f"there is no file {path}"
        raise _errors.error(code, problem)
    if _loaded.backend is None and has_delegate():
        _share_symbols()
    try:
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as problem:
        reason = str(problem)
        if "undefined symbol" in reason:
            reason += "; it was built for another release of executorch or of the delegate"
        raise _errors.error(code, f"{path} cannot be loaded: {reason}") from problem


def _share_symbols() -> None:
    """Let the builder library see the symbols of the runtime's extension module.

    The delegate of an executorch that was built from source is inside that module. Where it is in a
    library of its own this must not be done: the extension module of 1.4 has a volk of its own.
    """
    flags = ctypes.RTLD_GLOBAL | getattr(os, "RTLD_NOLOAD", 0)
    for name in ("_C", "_portable_lib"):
        spec = importlib.util.find_spec(f"executorch.extension.pybindings.{name}")
        if spec is not None and spec.origin is not None:
            try:
                ctypes.CDLL(spec.origin, mode=flags)
            except OSError:
                continue
