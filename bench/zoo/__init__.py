# SPDX-License-Identifier: Apache-2.0
"""Tiny models that others wrote, with random weights, for bench/lowering_models.py.

Needs `transformers`, `diffusers` and `torchvision`. No weight is downloaded: each model is made
from a config.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from .audio import AUDIO
from .base import Made
from .convolutional import CONVOLUTIONAL
from .diffusion import DIFFUSION
from .language import LANGUAGE
from .vision import VISION

MODELS: dict[str, Callable[[], Made]] = {
    **LANGUAGE,
    **DIFFUSION,
    **VISION,
    **CONVOLUTIONAL,
    **AUDIO,
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
