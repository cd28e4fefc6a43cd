# SPDX-License-Identifier: Apache-2.0
"""Diffusion transformers, of diffusers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .base import HIDDEN, Call, Made, T


def _dit() -> Made:
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=16,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        num_embeds_ada_norm=10,
        norm_num_groups=4,
    )
    inputs = (torch.randn(1, 4, 8, 8), torch.tensor([3]), torch.tensor([1]))
    return Call(model, ["hidden_states", "timestep", "class_labels"], "sample"), inputs


def _pixart() -> Made:
    from diffusers import PixArtTransformer2DModel

    model = PixArtTransformer2DModel(
        num_attention_heads=4,
        attention_head_dim=16,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        cross_attention_dim=HIDDEN,
        caption_channels=32,
        sample_size=8,
        patch_size=2,
        use_additional_conditions=False,
    )
    inputs = (torch.randn(1, 4, 8, 8), torch.randn(1, T, 32), torch.tensor([3]))
    return Call(model, ["hidden_states", "encoder_hidden_states", "timestep"], "sample"), inputs


def _sd3() -> Made:
    from diffusers import SD3Transformer2DModel

    model = SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=32,
        caption_projection_dim=HIDDEN,
        pooled_projection_dim=32,
        out_channels=4,
        pos_embed_max_size=16,
        qk_norm="rms_norm",
    )
    names = ["hidden_states", "encoder_hidden_states", "pooled_projections", "timestep"]
    inputs = (
        torch.randn(1, 4, 8, 8),
        torch.randn(1, T, 32),
        torch.randn(1, 32),
        torch.tensor([3]),
    )
    return Call(model, names, "sample"), inputs


def _flux() -> Made:
    from diffusers import FluxTransformer2DModel

    model = FluxTransformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=4,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
    )
    names = ["hidden_states", "encoder_hidden_states", "pooled_projections", "timestep"]
    names += ["img_ids", "txt_ids"]
    inputs = (
        torch.randn(1, 16, 4),
        torch.randn(1, T, 32),
        torch.randn(1, 32),
        torch.tensor([0.5]),
        torch.randn(16, 3),
        torch.zeros(T, 3),
    )
    return Call(model, names, "sample"), inputs


def _sana() -> Made:
    from diffusers import SanaTransformer2DModel

    model = SanaTransformer2DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=4,
        attention_head_dim=16,
        num_layers=2,
        num_cross_attention_heads=4,
        cross_attention_head_dim=16,
        cross_attention_dim=HIDDEN,
        caption_channels=32,
        sample_size=8,
    )
    inputs = (torch.randn(1, 4, 8, 8), torch.randn(1, T, 32), torch.tensor([3]))
    return Call(model, ["hidden_states", "encoder_hidden_states", "timestep"], "sample"), inputs


def _lumina_block(rotary: bool = False) -> Made:
    from diffusers.models.transformers.transformer_lumina2 import Lumina2TransformerBlock

    block = Lumina2TransformerBlock(
        dim=HIDDEN,
        num_attention_heads=4,
        num_kv_heads=2,
        multiple_of=32,
        ffn_dim_multiplier=1.0,
        norm_eps=1e-5,
    )
    made = _LuminaWhole(block) if rotary else _Lumina(block)
    return made, (torch.randn(1, T, HIDDEN), torch.randn(1, HIDDEN))


class _Lumina(nn.Module):
    """A Lumina block without its attention, whose rotary embedding multiplies complex numbers."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, temb: Tensor) -> Tensor:
        block: Any = self.block
        normed, gate_msa, scale_mlp, gate_mlp = block.norm1(x, temb)
        x = x + gate_msa.unsqueeze(1).tanh() * block.norm2(normed)
        mlp = block.feed_forward(block.ffn_norm1(x) * (1 + scale_mlp.unsqueeze(1)))
        out: Tensor = x + gate_mlp.unsqueeze(1).tanh() * block.ffn_norm2(mlp)
        return out


class _LuminaWhole(nn.Module):
    """A Lumina block as it is."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block
        angles = torch.randn(1, T, 8)
        self.register_buffer("rotary", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x: Tensor, temb: Tensor) -> Tensor:
        out: Tensor = self.block(x, None, self.rotary, temb)
        return out


DIFFUSION: dict[str, Callable[[], Made]] = {
    "DiT": _dit,
    "PixArt": _pixart,
    "SD3": _sd3,
    "Flux": _flux,
    "Sana": _sana,
    "Lumina 2 block, no attention": _lumina_block,
    "Lumina 2 block, whole": functools.partial(_lumina_block, rotary=True),
}
