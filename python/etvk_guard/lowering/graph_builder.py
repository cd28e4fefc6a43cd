# SPDX-License-Identifier: Apache-2.0
"""How numbers of an op's arguments get into a VkGraph."""

from __future__ import annotations

from typing import Any

from etvk_guard.lowering import _compat

__all__ = ["TypedGraphBuilder"]


class TypedGraphBuilder(_compat.vulkan_preprocess.VkGraphBuilder):  # type: ignore[misc]
    """Stock's builder of VkGraphs, but a number is shared only with numbers of its own type.

    Stock keeps one value for each number, and in Python 1 and 1.0 are the same key: after a
    `clamp(x, 0.0, 1.0)` the `groups=1` of a convolution is the clamp's 1.0, and its op builder,
    which asks for an integer, aborts.
    """

    const_scalar_to_value_ids: dict[Any, int]

    def get_or_create_scalar_value(self, scalar: Any) -> int:
        """The id of the value that holds a number."""
        shared = self.const_scalar_to_value_ids
        by_type = self.__dict__.setdefault("_ids_by_type", {})
        # By its text, too: 0.0 and -0.0 are equal.
        self.const_scalar_to_value_ids = by_type.setdefault((type(scalar), str(scalar)), {})
        try:
            return int(super().get_or_create_scalar_value(scalar))
        finally:
            self.const_scalar_to_value_ids = shared
