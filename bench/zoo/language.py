# SPDX-License-Identifier: Apache-2.0
"""Language models, encoders and parts of them, of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .base import HIDDEN, Call, Made, T, causal


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
        inputs = (torch.arange(T)[None] + 1, causal(), torch.arange(T)[None])
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


def _t5_whole() -> Made:
    import transformers

    config = transformers.T5Config(
        vocab_size=96, d_model=HIDDEN, d_kv=16, d_ff=128, num_layers=2, num_heads=4
    )
    model = transformers.T5Model(config)
    names = ["inputs_embeds", "decoder_inputs_embeds", "attention_mask", "decoder_attention_mask"]
    inputs = (torch.randn(1, T, HIDDEN), torch.randn(1, T, HIDDEN), torch.zeros(1, 1, T, T))
    return Call(model, names, "last_hidden_state", use_cache=False), (*inputs, causal())


def _bart() -> Made:
    import transformers

    config = transformers.BartConfig(
        vocab_size=96,
        d_model=HIDDEN,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    model = transformers.BartModel(config)
    names = ["inputs_embeds", "decoder_inputs_embeds", "decoder_attention_mask"]
    inputs = (torch.randn(1, T, HIDDEN), torch.randn(1, T, HIDDEN), causal())
    return Call(model, names, "last_hidden_state", use_cache=False), inputs


def _bert() -> Made:
    import transformers

    config = transformers.BertConfig(
        vocab_size=96,
        hidden_size=HIDDEN,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    model = transformers.BertModel(config)
    names = ["input_ids", "attention_mask", "token_type_ids", "position_ids"]
    row = torch.arange(T)[None]
    inputs = (row + 1, torch.zeros(1, 1, T, T), torch.zeros_like(row), row)
    return Call(model, names, "last_hidden_state"), inputs


def _mamba_norm() -> Made:
    from transformers.models.mamba2.modeling_mamba2 import MambaRMSNormGated

    inputs = (torch.randn(1, T, HIDDEN), torch.randn(1, T, HIDDEN))
    norm = MambaRMSNormGated(HIDDEN, group_size=HIDDEN // 2)
    return Call(norm, ["hidden_states", "gate"], ""), inputs


LANGUAGE: dict[str, Callable[[], Made]] = {
    "Gemma": _language("Gemma"),
    "Gemma 2": _language("Gemma2"),
    "Gemma 3": _language("Gemma3", config_class="Gemma3TextConfig"),
    "Llama": _language("Llama"),
    "Qwen2": _language("Qwen2"),
    "Qwen3": _language("Qwen3"),
    "Mistral": _language("Mistral"),
    "Phi-3": _language("Phi3"),
    "T5 encoder": _t5,
    "T5": _t5_whole,
    "BART": _bart,
    "BERT": _bert,
    "Mamba-2 gated norm": _mamba_norm,
}
