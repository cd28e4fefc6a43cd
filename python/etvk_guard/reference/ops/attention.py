# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention, fused and with a key-value cache (`impl/SDPA.cpp`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call


def fused(call: Call) -> torch.Tensor:
    """et_vk.sdpa(q, k, v, mask, scale): [B, H, S, D], an additive mask."""
    q, k, v = (call.real(index) for index in range(3))
    scores = q @ k.transpose(-2, -1) * call.number(4, 1 / math.sqrt(q.shape[-1]))
    if call.args[3] is not None:
        scores = scores + call.real(3)
    # The weights are stored in the dtype of q, the scores in float32.
    weights = torch.softmax(scores, dim=-1).to(call.tensor(0).dtype).float()
    return weights @ v


def update_cache(call: Call) -> None:
    """update_cache(value [1, S, H, D], cache [1, C, H, D], start): writes into the cache."""
    _write(call.tensor(1), call.tensor(0), int(call.number(2)))


def _write(cache: torch.Tensor, value: torch.Tensor, start: int) -> None:
    end = start + value.shape[1]
    if start < 0 or end > cache.shape[1]:
        raise ValueError(f"positions {start} to {end} of a cache of {cache.shape[1]}")
    cache[:, start:end] = value.to(cache.dtype)


def custom_sdpa(call: Call) -> torch.Tensor:
    """llama.custom_sdpa(q, k_cache, v_cache, start, mask, dropout, is_causal, scale)."""
    _check_llm(call, mask=4, dropout=5, causal=6, scale=7)
    return _causal(call.tensor(0), call.tensor(1), call.tensor(2), int(call.number(3)))


def sdpa_with_kv_cache(call: Call) -> torch.Tensor:
    """sdpa_with_kv_cache(q, k, v, k_cache, v_cache, start, length, mask, dropout, causal, scale).

    The delegate makes caches of its own, like the two given; what those hold is not read.
    """
    _check_llm(call, mask=7, dropout=8, causal=9, scale=10)
    start = int(call.number(5))
    for name, value, given in (("k", 1, 3), ("v", 2, 4)):
        cache = call.state.setdefault(name, torch.zeros_like(call.tensor(given)))
        _write(cache, call.tensor(value), start)
    return _causal(call.tensor(0), call.state["k"], call.state["v"], start)


def _check_llm(call: Call, *, mask: int, dropout: int, causal: int, scale: int) -> None:
    """The form that ET-VK has; anything else makes it abort."""
    args = call.args
    legal = (
        args[mask] is None
        and args[scale] is None
        and not args[dropout]
        and (args[causal] is None or bool(args[causal]))
    )
    if not legal:
        raise call.abort("stock aborts while loading: only causal attention without mask or scale")


def _causal(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, start: int
) -> torch.Tensor:
    """Causal attention of S queries at `start` over what the caches hold; [B, S, H, D]."""
    length, heads = q.shape[1], q.shape[2]
    context = start + length
    q32 = q.float().transpose(1, 2)
    k, v = (_heads(cache[:, :context], heads) for cache in (k_cache, v_cache))
    scores = q32 @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    hidden = torch.arange(context)[None, :] > (start + torch.arange(length))[:, None]
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
    return (weights @ v).transpose(1, 2)


def _heads(cache: torch.Tensor, heads: int) -> torch.Tensor:
    """[B, C, H_kv, D] as [B, H, C, D] in float32, each cached head shared by a group of heads."""
    return cache.float().transpose(1, 2).repeat_interleave(heads // cache.shape[2], dim=1)


OPS: Final = {
    "et_vk.sdpa.default": fused,
    "llama.custom_sdpa.default": custom_sdpa,
    "sdpa_with_kv_cache.default": sdpa_with_kv_cache,
    "update_cache.default": update_cache,
}
