# SPDX-License-Identifier: Apache-2.0
"""Runs Vulkan programs in the pip runtime, with norm weights of any kind.

>>> from etvk_guard import runtime
>>> runtime.enable_vulkan("libvulkan_backend.so").messages      # doctest: +SKIP
>>> program = runtime.load("model.pte")                         # doctest: +SKIP
>>> y, = program.forward(x)                                     # doctest: +SKIP

The pip `executorch` has no Vulkan delegate: bring one (docs/runtime.md says how), by argument or in
the environment variable ETVK_GUARD_BACKEND.
"""

from __future__ import annotations

from etvk_guard.runtime._builder import BuilderStatus
from etvk_guard.runtime._delegate import VulkanStatus, enable_vulkan
from etvk_guard.runtime._devices import VulkanDevice, vulkan_devices
from etvk_guard.runtime._errors import RuntimeFailedError
from etvk_guard.runtime._program import Guard, LoadedProgram, load

__all__ = [
    "BuilderStatus",
    "Guard",
    "LoadedProgram",
    "RuntimeFailedError",
    "VulkanDevice",
    "VulkanStatus",
    "enable_vulkan",
    "load",
    "vulkan_devices",
]
