# SPDX-License-Identifier: Apache-2.0
"""A builder library that was built for another release is refused before it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from etvk_guard.runtime import RuntimeFailedError, _delegate


def library(folder: Path, text: bytes) -> str:
    path = folder / "libetvk_guard_vulkan.so"
    path.write_bytes(b"\x7fELF\0\0" + text + b"\0more")
    return str(path)


@pytest.mark.parametrize("built", ["1.4.1", "2.5.1", "1.50.0+cpu"])
def test_another_release(tmp_path, monkeypatch, built):
    monkeypatch.setattr(_delegate, "executorch_version", lambda: "1.5.1")
    path = library(tmp_path, _delegate.BUILT_FOR + built.encode())
    with pytest.raises(RuntimeFailedError, match=r"EG504.*1\.5\.1 is installed") as caught:
        _delegate._open_builder(path)
    assert built in str(caught.value)


@pytest.mark.parametrize(
    "text", [_delegate.BUILT_FOR + b"1.5.0+cpu", _delegate.BUILT_FOR + b"unknown", b"nothing"]
)
def test_same_release_or_not_known(tmp_path, monkeypatch, text):
    monkeypatch.setattr(_delegate, "executorch_version", lambda: "1.5.1")
    _delegate._refuse_other_release(library(tmp_path, text))


def test_a_second_delegate(tmp_path, monkeypatch):
    path = library(tmp_path, _delegate.HAS_DELEGATE)
    monkeypatch.setattr(_delegate._loaded, "backend", "/another/libvulkan_backend.so")
    with pytest.raises(RuntimeFailedError, match=r"EG504.*ETVK_GUARD_BACKEND"):
        _delegate._open_builder(path)
    monkeypatch.setattr(_delegate._loaded, "backend", path)
    _delegate._refuse_second_delegate(path)
