# SPDX-License-Identifier: Apache-2.0
"""Rotary position embeddings (`impl/RotaryEmbedding.cpp`). Shapes: x [B, S, H, D]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call


def interleaved_pairs(call: Call) -> list[torch.Tensor | None]:
    """et_vk.apply_rotary_emb(xq, xk, cos, sin): pairs (2k, 2k + 1); cos and sin [S, D / 2]."""
    cos, sin = _per_token(call, 2), _per_token(call, 3)
    return [_rotate_pairs(call.real(index), cos, sin) for index in (0, 1)]


def _per_token(call: Call, index: int) -> torch.Tensor:
    """[S, D / 2] as [1, S, 1, D / 2], [S, H, D / 2] as [1, S, H, D / 2]."""
    freqs = call.real(index)
    return freqs[None, :, None, :] if freqs.dim() == 2 else freqs[None]


def _rotate_pairs(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    real, imaginary = x[..., ::2], x[..., 1::2]
    turned = (real * cos - imaginary * sin, real * sin + imaginary * cos)
    return torch.stack(turned, dim=-1).flatten(-2)


def halves(call: Call) -> list[torch.Tensor | None]:
    """et_vk.apply_rotary_emb_hf(xq, xk, cos, sin, start): halves of the first R of D numbers.

    cos and sin are tables [positions, R]; the rest of D passes through. Stock reads the first half
    of a table's row only, and takes it for both (`rotary_embedding_hf.glsl`).
    """
    start = int(call.number(4))
    length = call.tensor(0).shape[1]
    cos, sin = (call.real(index)[start : start + length, None, :] for index in (2, 3))
    if call.stock:
        cos, sin = (table[..., : table.shape[-1] // 2].repeat(1, 1, 2) for table in (cos, sin))
    return [_rotate_halves(call.real(index), cos, sin) for index in (0, 1)]


def _rotate_halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    turned, passed = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    first, second = turned.chunk(2, dim=-1)
    return torch.cat([turned * cos + torch.cat([-second, first], -1) * sin, passed], dim=-1)


def fused_frequencies(call: Call) -> torch.Tensor:
    """et_vk.apply_rotary_emb_interleaved(x [B, N, C], freqs): freqs hold N * C / 2 (cos, sin)."""
    x = call.real(0)
    pairs = call.real(1).reshape(x.shape[1], x.shape[2] // 2, 2)
    return _rotate_pairs(x, pairs[..., 0], pairs[..., 1])


OPS: Final = {
    "et_vk.apply_rotary_emb.default": interleaved_pairs,
    "et_vk.apply_rotary_emb_hf.default": halves,
    "et_vk.apply_rotary_emb_interleaved.default": fused_frequencies,
}
