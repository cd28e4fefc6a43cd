# SPDX-License-Identifier: Apache-2.0
"""Models of images, of transformers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .base import HIDDEN, Call, Made

_IMAGE = (1, 3, 32, 32)


def _transformers(name: str, result: str = "last_hidden_state", **config: Any) -> Made:
    import transformers

    settings = {"image_size": _IMAGE[-1], "attn_implementation": "eager", **config}
    model = getattr(transformers, f"{name}Model")(
        getattr(transformers, f"{name}Config")(**settings)
    )
    return Call(model, ["pixel_values"], result), (torch.randn(_IMAGE),)


def _vit(name: str, **config: Any) -> Made:
    """A vision transformer of two layers."""
    return _transformers(
        name,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        patch_size=8,
        **config,
    )


def _convnext(name: str) -> Made:
    return _transformers(
        name, hidden_sizes=[16, 32], depths=[1, 1], num_stages=2, patch_size=4, out_features=None
    )


def _swin() -> Made:
    return _transformers(
        "Swin", embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, patch_size=4
    )


VISION: dict[str, Callable[[], Made]] = {
    "ViT": functools.partial(_vit, "ViT"),
    "DINOv2": functools.partial(_vit, "Dinov2", mlp_ratio=2),
    "CLIP vision": functools.partial(_vit, "CLIPVision"),
    "SigLIP vision": functools.partial(_vit, "SiglipVision"),
    "ConvNeXt": functools.partial(_convnext, "ConvNext"),
    "ConvNeXt V2": functools.partial(_convnext, "ConvNextV2"),
    "Swin": _swin,
}
