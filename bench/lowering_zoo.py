# SPDX-License-Identifier: Apache-2.0
"""Tiny transformers and diffusers models with random weights, for bench/lowering_models.py.

Needs `transformers` and `diffusers`. No weight is downloaded: each model is made from a config.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

T = 6  # tokens
HIDDEN = 64

Made = tuple[nn.Module, tuple[Tensor, ...]]


class Call(nn.Module):
    """A model called with fixed keyword names, whose result is one tensor."""

    def __init__(self, model: nn.Module, names: list[str], result: str, **fixed: Any) -> None:
        super().__init__()
        self.model = model
        self.names = names
        self.result = result
        self.fixed = fixed

    def forward(self, *inputs: Tensor) -> Tensor:
        out = self.model(**dict(zip(self.names, inputs, strict=True)), **self.fixed)
        found: Tensor = out if isinstance(out, Tensor) else getattr(out, self.result)
        return found


def _causal() -> Tensor:
    mask = torch.full((T, T), -1e4).triu(1)
    return mask[None, None]


def _language(name: str, config_class: str = "", **config: Any) -> Callable[[], Made]:
    """A causal language model of two layers, with a 4-D float mask and position ids."""

    def make() -> Made:
        import transformers

        settings = {
            "vocab_size": 96,
            "hidden_size": HIDDEN,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
            "attn_implementation": "eager",
            **config,
        }
        made = getattr(transformers, config_class or f"{name}Config")(**settings)
        model = getattr(transformers, f"{name}ForCausalLM")(made)
        inputs = (torch.arange(T)[None] + 1, _causal(), torch.arange(T)[None])
        names = ["input_ids", "attention_mask", "position_ids"]
        return Call(model, names, "logits", use_cache=False), inputs

    return make


def _t5() -> Made:
    import transformers

    config = transformers.T5Config(
        vocab_size=96, d_model=HIDDEN, d_kv=16, d_ff=128, num_layers=2, num_heads=4
    )
    model = transformers.T5EncoderModel(config)
    inputs = (torch.randn(1, T, HIDDEN), torch.zeros(1, 1, T, T))
    return Call(model, ["inputs_embeds", "attention_mask"], "last_hidden_state"), inputs


def _mamba_norm() -> Made:
    from transformers.models.mamba2.modeling_mamba2 import MambaRMSNormGated

    inputs = (torch.randn(1, T, HIDDEN), torch.randn(1, T, HIDDEN))
    norm = MambaRMSNormGated(HIDDEN, group_size=HIDDEN // 2)
    return Call(norm, ["hidden_states", "gate"], ""), inputs


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


MODELS: dict[str, Callable[[], Made]] = {
    "Gemma": _language("Gemma"),
    "Gemma 2": _language("Gemma2"),
    "Gemma 3": _language("Gemma3", config_class="Gemma3TextConfig"),
    "Llama": _language("Llama"),
    "Qwen2": _language("Qwen2"),
    "Qwen3": _language("Qwen3"),
    "Mistral": _language("Mistral"),
    "Phi-3": _language("Phi3"),
    "T5 encoder": _t5,
    "Mamba-2 gated norm": _mamba_norm,
    "DiT": _dit,
    "PixArt": _pixart,
    "SD3": _sd3,
    "Flux": _flux,
    "Sana": _sana,
    "Lumina 2 block, no attention": _lumina_block,
    "Lumina 2 block, whole": functools.partial(_lumina_block, rotary=True),
}


def make(name: str, half: bool = False) -> Made:
    """A model of the table and its inputs, seeded; in half precision if asked for.

    Norm weights are drawn at random too: as made, they are ones, which would hide a lost weight.
    """
    torch.manual_seed(0)
    module, inputs = MODELS[name]()
    for parameter in module.parameters():
        if parameter.dim() <= 1:
            nn.init.normal_(parameter, 0.5, 0.2)
        parameter.requires_grad_(False)
    if half:
        module = module.half()
        inputs = tuple(x.half() if x.is_floating_point() else x for x in inputs)
    return module.eval(), inputs
