# SPDX-License-Identifier: Apache-2.0
"""The builder's C API, against a library that does as it is told."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from etvk_guard.runtime._builder import STATES, Builder, BuilderStatus


def status_text(state: str = "active", message: str = "in effect") -> str:
    return json.dumps(
        {
            "state": state,
            "message": message,
            "built": {"executorch": "1.5.1", "event_tracer": True, "compute_graph_bytes": 680},
            "kernels": 60,
            "sites": {"stock": 1, "fused_row": 2},
            "ops": {"et_vk.rms_norm.default": state == "active"},
        }
    )


class Library:
    """As libetvk_guard_vulkan.so: functions that count how often they are called."""

    def __init__(self, state: str = "active", message: str = "in effect") -> None:
        self.state = state
        self.message = message
        self.calls: list[str] = []
        self.etvk_guard_vulkan_install = lambda: self.set("active")
        self.etvk_guard_vulkan_uninstall = lambda: self.set("inactive")
        # Attributes of a C function, such as restype, are set on it.
        self.etvk_guard_vulkan_status: Any = _Function(self.write)

    def set(self, state: str) -> int:
        self.calls.append(state)
        self.state = state
        return STATES.index(state)

    def write(self, buffer: Any, size: int) -> int:
        text = status_text(self.state, self.message).encode()
        buffer.value = text[: size - 1]
        return len(text)


class _Function(SimpleNamespace):
    def __init__(self, call: Any) -> None:
        super().__init__(call=call)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


def make(**options: Any) -> tuple[Builder, Library]:
    library = Library(**options)
    return Builder(library, "lib.so"), library  # type: ignore[arg-type]


def test_status() -> None:
    builder, _ = make()
    status = builder.status()
    assert status.active
    assert status == BuilderStatus(
        state="active",
        message="in effect",
        executorch="1.5.1",
        sites={"stock": 1, "fused_row": 2},
        ops={"et_vk.rms_norm.default": True},
        kernels=60,
    )


def test_a_long_status_is_read_in_full() -> None:
    message = "x" * 100_000
    builder, _ = make(message=message)
    assert builder.status().message == message


@pytest.mark.parametrize("state", STATES)
def test_only_active_is_active(state: str) -> None:
    builder, _ = make(state=state)
    assert builder.status().active == (state == "active")


def test_what_is_no_builder() -> None:
    with pytest.raises(AttributeError):
        Builder(SimpleNamespace(), "libm.so")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "wanted", "calls"),
    [
        ("active", True, []),
        ("active", False, ["inactive", "active"]),
        ("inactive", True, ["active", "inactive"]),
        ("inactive", False, []),
    ],
)
def test_set_to_goes_back(state: str, wanted: bool, calls: list[str]) -> None:
    builder, library = make(state=state)
    with builder.set_to(wanted):
        assert builder.status().active == wanted
    assert library.state == state
    assert library.calls == calls


def test_set_to_goes_back_after_an_error() -> None:
    builder, library = make()
    with pytest.raises(KeyError), builder.set_to(False):
        raise KeyError
    assert library.state == "active"


def test_set_to_is_for_one_thread_at_a_time() -> None:
    builder, library = make()
    seen: list[bool] = []

    def work(wanted: bool) -> None:
        for _ in range(200):
            with builder.set_to(wanted):
                seen.append((library.state == "active") == wanted)

    threads = [threading.Thread(target=work, args=(wanted,)) for wanted in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 400
    assert all(seen)
