# SPDX-License-Identifier: Apache-2.0
"""Numbers of dtypes, memory formats, storage types and layouts in the two schemas, as torch's."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import torch

# VkDataType of ET-VK's schema.fbs.
VK_DTYPES: Final = MappingProxyType(
    {
        0: torch.bool,
        1: torch.uint8,
        2: torch.int8,
        3: torch.int32,
        4: torch.float16,
        5: torch.float32,
        6: torch.float64,
        7: torch.int64,
    }
)
VK_UNSET: Final = 127

# ScalarType of ExecuTorch's scalar_type.fbs; the same numbers as c10's.
SCALAR_TYPES: Final = MappingProxyType(
    {
        0: torch.uint8,
        1: torch.int8,
        2: torch.int16,
        3: torch.int32,
        4: torch.int64,
        5: torch.float16,
        6: torch.float32,
        7: torch.float64,
        11: torch.bool,
        15: torch.bfloat16,
        27: torch.uint16,
        28: torch.uint32,
        29: torch.uint64,
    }
)

MEMORY_FORMATS: Final = MappingProxyType(
    {0: torch.contiguous_format, 1: torch.preserve_format, 2: torch.channels_last}
)

# VkStorageType; a VkTensor without one takes the graph's override, and 3-D textures without that.
BUFFER: Final = 0
TEXTURE_3D: Final = 1
TEXTURE_2D: Final = 2
DEFAULT_STORAGE: Final = 255

# VkMemoryLayout, those of float tensors.
WIDTH_PACKED: Final = 0
HEIGHT_PACKED: Final = 1
CHANNELS_PACKED: Final = 2
DEFAULT_LAYOUT: Final = 255


def nbytes(dtype: torch.dtype, dims: tuple[int, ...]) -> int:
    """Bytes of a contiguous tensor, in exact integers (no overflow)."""
    total = torch.empty(0, dtype=dtype).element_size()
    for dim in dims:
        total *= dim
    return total
