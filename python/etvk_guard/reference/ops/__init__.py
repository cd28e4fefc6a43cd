# SPDX-License-Identifier: Apache-2.0
"""The ops of ET-VK in torch, one family a file; each has a table `OPS` of functions by op name.

An op's function takes a `Call` and returns its result in any float dtype: a tensor, a list of
tensors for an op with several results, or a whole number for a symbolic one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from etvk_guard.reference.ops import (
    attention,
    convolution,
    copies,
    elementwise,
    embedding,
    generic,
    norms,
    pooling,
    quantized,
    rope,
    symbolic,
)

if TYPE_CHECKING:
    from etvk_guard.reference.call import OpFunction

FAMILIES: Final = (
    generic,
    elementwise,
    copies,
    embedding,
    norms,
    convolution,
    pooling,
    attention,
    rope,
    symbolic,
    quantized,
)

OPS: Final[Mapping[str, OpFunction]] = MappingProxyType(
    {name: function for family in FAMILIES for name, function in family.OPS.items()}
)
