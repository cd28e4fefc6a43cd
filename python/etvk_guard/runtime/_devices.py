# SPDX-License-Identifier: Apache-2.0
"""The Vulkan devices that the loader finds, through ctypes: no other package is needed for it."""

from __future__ import annotations

import ctypes
import ctypes.util
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["VulkanDevice", "vulkan_devices"]

KINDS: Final = ("other", "integrated GPU", "discrete GPU", "virtual GPU", "CPU")
VK_API_VERSION_1_1: Final = (1 << 22) | (1 << 12)


@dataclass(frozen=True)
class VulkanDevice:
    """A physical device: its name, "CPU" or a kind of GPU, and the Vulkan version it has."""

    name: str
    kind: str
    api_version: str


class _ApplicationInfo(ctypes.Structure):
    _fields_ = (
        ("sType", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("pApplicationName", ctypes.c_char_p),
        ("applicationVersion", ctypes.c_uint32),
        ("pEngineName", ctypes.c_char_p),
        ("engineVersion", ctypes.c_uint32),
        ("apiVersion", ctypes.c_uint32),
    )


class _InstanceCreateInfo(ctypes.Structure):
    _fields_ = (
        ("sType", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("pApplicationInfo", ctypes.POINTER(_ApplicationInfo)),
        ("enabledLayerCount", ctypes.c_uint32),
        ("ppEnabledLayerNames", ctypes.c_void_p),
        ("enabledExtensionCount", ctypes.c_uint32),
        ("ppEnabledExtensionNames", ctypes.c_void_p),
    )


class _DeviceProperties(ctypes.Structure):
    """The beginning of VkPhysicalDeviceProperties, and room for the rest of its 824 bytes."""

    _fields_ = (
        ("apiVersion", ctypes.c_uint32),
        ("driverVersion", ctypes.c_uint32),
        ("vendorID", ctypes.c_uint32),
        ("deviceID", ctypes.c_uint32),
        ("deviceType", ctypes.c_int),
        ("deviceName", ctypes.c_char * 256),
        ("rest", ctypes.c_uint64 * 128),
    )


def vulkan_devices() -> tuple[VulkanDevice, ...]:
    """The devices in the loader's order; none where there is no loader or no driver."""
    loader = _open_loader()
    if loader is None:
        return ()
    application = _ApplicationInfo(sType=0, apiVersion=VK_API_VERSION_1_1)
    info = _InstanceCreateInfo(sType=1, pApplicationInfo=ctypes.pointer(application))
    instance = ctypes.c_void_p()
    if loader.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance)) != 0:
        return ()
    try:
        return tuple(_describe(loader, handle) for handle in _enumerate(loader, instance))
    finally:
        loader.vkDestroyInstance(instance, None)


def _open_loader() -> Any:
    for name in ("libvulkan.so.1", ctypes.util.find_library("vulkan")):
        if name is not None:
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
    return None


def _enumerate(loader: Any, instance: ctypes.c_void_p) -> list[ctypes.c_void_p]:
    count = ctypes.c_uint32()
    if loader.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None) != 0:
        return []
    handles = (ctypes.c_void_p * count.value)()
    if loader.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles) != 0:
        return []
    return [ctypes.c_void_p(handle) for handle in handles[: count.value]]


def _describe(loader: Any, handle: ctypes.c_void_p) -> VulkanDevice:
    properties = _DeviceProperties()
    loader.vkGetPhysicalDeviceProperties(handle, ctypes.byref(properties))
    version = properties.apiVersion
    kind = properties.deviceType
    return VulkanDevice(
        name=properties.deviceName.decode("utf-8", "replace"),
        kind=KINDS[kind] if 0 <= kind < len(KINDS) else KINDS[0],
        api_version=f"{(version >> 22) & 0x7F}.{(version >> 12) & 0x3FF}.{version & 0xFFF}",
    )
