# SPDX-License-Identifier: Apache-2.0
"""Models of sound, and of speech with a style, of transformers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .base import HIDDEN, Call, Made, T, causal


def _whisper_config() -> object:
    import transformers

    return transformers.WhisperConfig(
        vocab_size=96,
        d_model=HIDDEN,
        num_mel_bins=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_source_positions=8,
        max_target_positions=16,
        pad_token_id=0,
        attn_implementation="eager",
    )


def _whisper_encoder() -> Made:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    encoder = WhisperEncoder(_whisper_config())
    return Call(encoder, ["input_features"], "last_hidden_state"), (torch.randn(1, 16, 16),)


def _whisper() -> Made:
    import transformers

    model = transformers.WhisperModel(_whisper_config())
    names = ["input_features", "decoder_inputs_embeds", "decoder_attention_mask"]
    names += ["decoder_position_ids"]
    tokens = torch.arange(T)[None]
    inputs = (torch.randn(1, 16, 16), torch.randn(1, T, HIDDEN), causal(), tokens)
    return Call(model, names, "last_hidden_state", use_cache=False), inputs


def _speech_block() -> Made:
    """A block of Qwen2.5-Omni's speech decoder: adaptive layer norms with the speaker's style."""
    from transformers.models.qwen2_5_omni import modeling_qwen2_5_omni as omni
    from transformers.models.qwen2_5_omni.configuration_qwen2_5_omni import Qwen2_5OmniDiTConfig

    config = Qwen2_5OmniDiTConfig(
        hidden_size=HIDDEN, num_attention_heads=4, head_dim=16, num_hidden_layers=1, ff_mult=2
    )
    config._attn_implementation = "sdpa"
    block = _Speech(omni.DiTDecoderLayer(config, look_ahead_block=1, look_backward_block=1))
    return block, (torch.randn(1, T, HIDDEN), torch.randn(1, HIDDEN))


class _Speech(nn.Module):
    """A block whose rotary tables and blocks of the mask are constants."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block
        angles = torch.randn(1, T, 16)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("blocks", torch.zeros(1, 4, T, T))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        out: Tensor = self.block(x, style, (self.cos, self.sin), self.blocks)
        return out


AUDIO: dict[str, Callable[[], Made]] = {
    "Whisper encoder": _whisper_encoder,
    "Whisper": _whisper,
    "Qwen2.5-Omni speech block": _speech_block,
}
