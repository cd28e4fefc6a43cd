# SPDX-License-Identifier: Apache-2.0
"""Vulkan devices, from a loader that does as it is told."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from etvk_guard.runtime import VulkanDevice, _devices

DEVICES = (
    ("Some GPU", 2, (1 << 22) | (3 << 12) | 230),
    ("llvmpipe", 4, (1 << 22) | (1 << 12)),
    ("A new kind", 9, 1 << 22),
)


class Loader:
    """As libvulkan.so.1: handles are 1, 2, ..."""

    def __init__(self, result: int = 0) -> None:
        self.result = result
        self.instances = 0

    def vkCreateInstance(self, info: Any, _: None, instance: Any) -> int:  # noqa: N802
        assert info._obj.sType == 1
        assert info._obj.pApplicationInfo.contents.apiVersion == (1 << 22) | (1 << 12)
        if self.result == 0:
            self.instances += 1
            instance._obj.value = 77
        return self.result

    def vkDestroyInstance(self, instance: ctypes.c_void_p, _: None) -> None:  # noqa: N802
        assert instance.value == 77
        self.instances -= 1

    def vkEnumeratePhysicalDevices(self, _: Any, count: Any, handles: Any) -> int:  # noqa: N802
        count._obj.value = len(DEVICES)
        for index in range(len(DEVICES) if handles is not None else 0):
            handles[index] = index + 1
        return 0

    def vkGetPhysicalDeviceProperties(self, handle: ctypes.c_void_p, properties: Any) -> None:  # noqa: N802
        assert handle.value is not None
        name, kind, version = DEVICES[handle.value - 1]
        found = properties._obj
        found.deviceName, found.deviceType, found.apiVersion = name.encode(), kind, version


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = Loader()
    monkeypatch.setattr(_devices, "_open_loader", lambda: loader)
    assert _devices.vulkan_devices() == (
        VulkanDevice("Some GPU", "discrete GPU", "1.3.230"),
        VulkanDevice("llvmpipe", "CPU", "1.1.0"),
        VulkanDevice("A new kind", "other", "1.0.0"),
    )
    assert loader.instances == 0


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_devices, "_open_loader", lambda: Loader(result=-9))
    assert _devices.vulkan_devices() == ()


def test_no_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_devices, "_open_loader", lambda: None)
    assert _devices.vulkan_devices() == ()


def test_room_for_all_properties() -> None:
    """VkPhysicalDeviceProperties has 824 bytes; the loader writes all of them."""
    assert ctypes.sizeof(_devices._DeviceProperties) >= 824
