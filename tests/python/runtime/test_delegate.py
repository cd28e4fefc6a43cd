# SPDX-License-Identifier: Apache-2.0
"""Finding libraries, where there is no delegate: what is said, and what is an error."""

from __future__ import annotations

import ctypes.util
from pathlib import Path

import pytest

from etvk_guard import runtime
from etvk_guard.runtime import _delegate


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ETVK_GUARD_BACKEND", "ETVK_GUARD_BUILDER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def library() -> str:
    """A shared library that has nothing to do with all this."""
    name = ctypes.util.find_library("z") or ctypes.util.find_library("m")
    assert name is not None
    for line in Path("/proc/self/maps").read_text().splitlines():
        if name in line:
            return line.split()[-1]
    pytest.fail(f"{name} is not loaded")


def test_without_a_delegate() -> None:
    status = runtime.enable_vulkan()
    assert not status.available
    assert not status.guarded
    assert status.backend is None
    assert status.builder is None
    assert status.executorch == _delegate.executorch_version()
    assert any("ETVK_GUARD_BACKEND" in message for message in status.messages)


def test_a_library_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "none.so")
    with pytest.raises(runtime.RuntimeFailedError, match=r"EG503.*there is no file") as caught:
        runtime.enable_vulkan(path)
    assert caught.value.code == "EG503"
    monkeypatch.setenv("ETVK_GUARD_BACKEND", path)
    with pytest.raises(runtime.RuntimeFailedError, match="EG503"):
        runtime.enable_vulkan()


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("no library")
    with pytest.raises(runtime.RuntimeFailedError, match=r"EG503.*cannot be loaded"):
        runtime.enable_vulkan(path)


def test_a_library_that_is_no_delegate(library: str) -> None:
    with pytest.raises(runtime.RuntimeFailedError, match=r"EG503.*registered no VulkanBackend"):
        runtime.enable_vulkan(library)
    assert runtime.enable_vulkan().backend is None


def test_a_library_that_is_no_builder(library: str) -> None:
    with pytest.raises(runtime.RuntimeFailedError, match=r"EG504.*is not the builder library"):
        _delegate._open_builder(library)


@pytest.mark.parametrize(
    ("built", "installed", "same"),
    [
        ("1.5.1", "1.5.1", True),
        ("1.5.1+cpu", "1.5.1", True),
        ("1.4.1", "1.5.1", False),
        ("1.5.1", None, False),
    ],
)
def test_versions_without_their_labels(built: str, installed: str | None, same: bool) -> None:
    assert _delegate._same(built, installed) == same
