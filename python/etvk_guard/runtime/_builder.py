# SPDX-License-Identifier: Apache-2.0
"""The builder library's C API (`etvk_guard/vulkan.h`) through ctypes."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Builder", "BuilderStatus"]

STATES: Final = ("active", "inactive", "disabled", "refused")


@dataclass(frozen=True)
class BuilderStatus:
    """What the builder library says of itself.

    Attributes:
        state: "active": programs loaded from now on are built by it; "inactive": removed again;
            "disabled": ETVK_GUARD=off; "refused": it does not fit the delegate.
        message: one line, what happened.
        executorch: version of the headers that it was built against, or "unknown".
        sites: norms built so far, by path ("stock", "fused_row", "unit_then_ops", ...).
        ops: for each op whether the delegate's registry answers with the builder, asked just now.
        kernels: how many kernels are built in.
    """

    state: str
    message: str
    executorch: str
    sites: Mapping[str, int] = field(default_factory=dict)
    ops: Mapping[str, bool] = field(default_factory=dict)
    kernels: int = 0

    @property
    def active(self) -> bool:
        """Whether programs loaded from now on are built by it."""
        return self.state == "active"

    @classmethod
    def from_json(cls, text: str) -> BuilderStatus:
        """From what etvk_guard_vulkan_status() writes."""
        data: dict[str, Any] = json.loads(text)
        return cls(
            state=data["state"],
            message=data["message"],
            executorch=data["built"]["executorch"],
            sites=data["sites"],
            ops=data["ops"],
            kernels=data["kernels"],
        )


class Builder:
    """A loaded builder library. Raises AttributeError where `library` is none."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        """Bind the C functions of `library`, which was loaded from `path`."""
        self.path = path
        self._lock = threading.RLock()
        self._install = library.etvk_guard_vulkan_install
        self._uninstall = library.etvk_guard_vulkan_uninstall
        self._status = library.etvk_guard_vulkan_status
        self._status.restype = ctypes.c_size_t
        self._status.argtypes = (ctypes.c_char_p, ctypes.c_size_t)

    def status(self) -> BuilderStatus:
        """What it says of itself now."""
        size = 4096
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = self._status(buffer, size)
            if length < size:
                return BuilderStatus.from_json(buffer.value.decode("utf-8", "replace"))
            size = length + 1

    def install(self) -> str:
        """Put it into effect; the state."""
        with self._lock:
            return STATES[self._install()]

    def uninstall(self) -> str:
        """Hand the ops back to the delegate's own builders; the state."""
        with self._lock:
            return STATES[self._uninstall()]

    @contextmanager
    def set_to(self, active: bool) -> Iterator[None]:
        """Build programs with it, or without it, meanwhile; one thread at a time."""
        with self._lock:
            before = self.status().active
            if before != active:
                self.install() if active else self.uninstall()
            try:
                yield
            finally:
                if before != active:
                    self.uninstall() if active else self.install()
