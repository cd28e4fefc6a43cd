# SPDX-License-Identifier: Apache-2.0
"""Pooling (`impl/Pool.cpp`) and resampling (`upsample_2d.glsl`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from etvk_guard.reference.ops.generic import aten

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call, Result


def avg_pool2d(call: Call) -> Result:
    """aten.avg_pool2d(.., divisor); stock leaves out a divisor that is no integer."""
    if call.stock and isinstance(call.args[6], float):
        call.args[6] = None
    return aten("avg_pool2d.default")(call)


def upsample_nearest2d(call: Call) -> torch.Tensor:
    """The nearest neighbour; to stock it is the one that is nearest to the new pixel's middle."""
    computed = aten("upsample_nearest2d.vec")(call)
    assert isinstance(computed, torch.Tensor)
    if not call.stock:
        return computed
    x = call.tensor(0)
    rows, columns = (_nearest(x.shape[dim], computed.shape[dim]) for dim in (-2, -1))
    return x[..., rows, :][..., columns]


def _nearest(size: int, made: int) -> torch.Tensor:
    middle = (torch.arange(made) + 0.5) * (size / made) - 0.5
    return middle.round().clamp(0, size - 1).to(torch.int64)


OPS: Final = {
    "aten.avg_pool2d.default": avg_pool2d,
    "aten.max_pool2d.default": aten("max_pool2d.default"),
    "aten.max_pool2d_with_indices.default": aten("max_pool2d_with_indices.default"),
    "aten.upsample_nearest2d.vec": upsample_nearest2d,
}
