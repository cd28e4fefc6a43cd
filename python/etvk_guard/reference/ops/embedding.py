# SPDX-License-Identifier: Apache-2.0
"""Rows of a table.

"stock" computes what the shader of a texture does (`embedding_texture.glsl`): whatever the result
is packed along, it takes one index for a texel, and four neighbours of a row for its elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from etvk_guard.reference import stock
from etvk_guard.reference.dtypes import BUFFER, WIDTH_PACKED

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call

_TEXEL: Final = 4


def embedding(call: Call) -> torch.Tensor:
    """aten.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)."""
    table, indices = call.tensor(0), call.tensor(1).long()
    rows = indices.numel() * table.shape[-1]
    if rows > torch.Size(call.out_tensor().dims).numel():
        raise ValueError(f"the result has {rows} elements, more than are declared")
    out = call.out_tensor()
    layout = call.graph.layout(out)
    shader = not call.is_channels_packed_texture(1)
    if call.stock and shader and call.graph.storage(out) != BUFFER and layout != WIDTH_PACKED:
        return _packed_otherwise(table, indices, layout)
    return torch.nn.functional.embedding(indices, table)


def _packed_otherwise(table: torch.Tensor, indices: torch.Tensor, packed: int) -> torch.Tensor:
    """What the shader makes of a result that is packed along the dim `packed` from the last."""
    width = table.shape[-1]
    dim = indices.dim() - packed  # of the result, and of the indices too
    inside = torch.zeros((), dtype=torch.long)
    if dim >= 0:
        along = torch.arange(indices.shape[dim])
        indices = indices.index_select(dim, along // _TEXEL * _TEXEL)
        inside = (along % _TEXEL).reshape(-1, *[1] * packed)
    starts = indices.unsqueeze(-1) * width + torch.arange(width) + inside
    flat = torch.nn.functional.pad(table.float().reshape(-1), (0, _TEXEL), value=stock.POISON)
    return flat[starts]


OPS: Final = {"aten.embedding.default": embedding}
