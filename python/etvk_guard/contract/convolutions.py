# SPDX-License-Identifier: Apache-2.0
"""Convolutions that stock refuses or computes wrongly; `cpp/pte/quirks_convolution.cpp` agrees.

`Convolution.cpp` picks a shader by the weight's shape, and looks at little else. Those for kernels
of 1 by 1 and for transposed convolutions know nothing of groups, and the general one takes a group
for whole texels, of four channels each. The general depthwise shader leaves a row of its kernel at
the image's right edge without skipping the rest of that row's numbers, and has no form for a stride
unlike its dilation. The one for a 1-D kernel of one number knows no stride, padding or groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Convolution", "pair"]

_IMAGE_RANK = 4
_TEXEL = 4
_TILED = ((3, 3), (5, 5))  # depthwise kernels with shaders of their own


@dataclass(frozen=True)
class Convolution:
    """A convolution's numbers, of images or of rows.

    Attributes:
        weight: the weight's sizes: channels made, channels of a group (transposed: the other way
            round), and the kernel.
        stride, padding, dilation: of the kernel's dims; one number stands for all of them.
        transposed: it is transposed.
        groups: how many there are.
    """

    weight: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    groups: int

    @property
    def of_images(self) -> bool:
        """Whether it has two dims besides batch and channels."""
        return len(self.weight) == _IMAGE_RANK

    @property
    def depthwise(self) -> bool:
        """Whether stock takes it for one, of images: each channel has a kernel of its own."""
        made, read = self.weight[:2]
        return self.of_images and not self.transposed and (made, read) == (self.groups, 1)

    def wrong_groups(self) -> str:
        """Why its groups give silently wrong values; "" if they do not."""
        if self.groups <= 1 or not self.of_images or self.depthwise:
            return ""
        if self.transposed:
            return "it is transposed, and in groups"
        made, read, *kernel = self.weight
        if all(size == 1 for size in kernel):
            return "its kernel is 1 by 1, and it is in groups"
        if made // self.groups % _TEXEL == 0 and read % _TEXEL == 0:
            return ""
        return f"its groups, with a weight {list(self.weight)}, are not of fours of channels"

    def cut_kernel(self) -> bool:
        """Whether it is depthwise, and its kernel is cut off wrongly at the edge: silently."""
        if not self._untiled() or self._strided():
            return False
        return self.weight[2] > 1 and pair(self.padding)[1] > 0

    def refused(self) -> str:
        """Why stock throws; "" if it does not. Of rows this is so in a height-packed texture."""
        if self.transposed and any(step > 1 for step in self.dilation):
            return "it is transposed, and dilated"
        if self._untiled() and self._strided():
            shape = "x".join(map(str, self.weight[2:]))
            return (
                f"no shader is depthwise with a kernel of {shape} and a stride unlike its dilation"
            )
        if self._pointwise_row() and self.groups != 1:
            return "its kernel is one number, and it is in groups"
        return ""

    def ignored(self) -> str:
        """What stock does not look at, of rows in a height-packed texture; "" if there is nothing.

        The values are then silently wrong.
        """
        if self._pointwise_row() and (set(self.stride) != {1} or set(self.padding) != {0}):
            return "its kernel is one number, and stride or padding would be ignored"
        return ""

    def _untiled(self) -> bool:
        return self.depthwise and self.weight[2:] not in _TILED

    def _strided(self) -> bool:
        return pair(self.stride) != pair(self.dilation)

    def _pointwise_row(self) -> bool:
        return len(self.weight) == _IMAGE_RANK - 1 and self.weight[2] == 1 and not self.transposed


def pair(numbers: Sequence[int]) -> list[int]:
    """A list for both dims of an image: one number stands for both."""
    return list(numbers) * (2 if len(numbers) == 1 else 1)
