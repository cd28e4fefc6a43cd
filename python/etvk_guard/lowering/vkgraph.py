# SPDX-License-Identifier: Apache-2.0
"""Last touches on a finished VkGraph, where storage types are settled."""

from __future__ import annotations

from typing import Any

__all__ = ["settle_casts"]

_TEXTURE_CAST = "aten._to_copy.default"
_BUFFER_CAST = "dim_order_ops._to_dim_order_copy.default"
_FLOATS = ("FLOAT16", "FLOAT32")


def settle_casts(graph: Any) -> int:
    """Call the cast that works on buffers, where a cast between floats was put on buffers.

    Lowering lets `aten._to_copy` work on any storage, but between float types its builder copies
    images, and throws on buffers. The other cast op takes the same arguments, the last of which its
    builder ignores, and works on buffers.

    Args:
        graph: the `VkGraph` that preprocessing made; changed in place.

    Returns:
        How many casts were changed.
    """
    changed = 0
    for call in graph.chain:
        if call.name != _TEXTURE_CAST:
            continue
        ends = [graph.values[call.args[i]].value for i in (0, -1)]
        if all(_is_float_buffer(end) for end in ends):
            call.name = _BUFFER_CAST
            changed += 1
    return changed


def _is_float_buffer(value: Any) -> bool:
    if type(value).__name__ != "VkTensor":
        return False
    return value.datatype.name in _FLOATS and value.storage_type.name == "BUFFER"
