# SPDX-License-Identifier: Apache-2.0
"""Groups of a convolution that stock computes wrongly; `cpp/pte/convolution.cpp` says the same.

`Convolution.cpp` picks a shader by the weight's shape. Those for kernels of 1 by 1 and for
transposed convolutions know nothing of groups, and the general one takes a group for whole texels,
of four channels each.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["wrong_groups"]

_IMAGE_RANK = 4
_TEXEL = 4


def wrong_groups(weight: Sequence[int], groups: int, transposed: bool) -> str:
    """Why stock gives silently wrong values; "" if it does not.

    Args:
        weight: the weight's sizes; those of a 1-D convolution are none of ours.
        groups: how many there are.
        transposed: the convolution is transposed.
    """
    if groups <= 1 or len(weight) != _IMAGE_RANK:
        return ""
    if transposed:
        return "it is transposed, and in groups"
    made, read, *kernel = weight
    if made == groups and read == 1:
        return ""  # depthwise: a shader of its own
    if all(size == 1 for size in kernel):
        return "its kernel is 1 by 1, and it is in groups"
    if made // groups % _TEXEL == 0 and read % _TEXEL == 0:
        return ""
    return f"its groups, with a weight {list(weight)}, are not of fours of channels"
