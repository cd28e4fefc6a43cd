# SPDX-License-Identifier: Apache-2.0
"""Models of images, of torchvision: mostly convolutions and batch norms."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from .base import Made

_IMAGE = (1, 3, 32, 32)
_DETECTION = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def _torchvision(module: str) -> Any:
    """A module of torchvision's models.

    A build of torchvision for another torch (that of PyPI, beside torch's CPU build) has no ops of
    its own, and does not import without the names of two, which these models do not use.
    """
    ops = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            ops.define(name + _DETECTION)
    return importlib.import_module(f"torchvision.models.{module}")


def _maxvit() -> Made:
    model = _torchvision("maxvit").MaxVit(
        input_size=_IMAGE[2:],
        stem_channels=16,
        block_channels=[16, 32],
        block_layers=[1, 1],
        head_dim=16,
        stochastic_depth_prob=0.0,
        partition_size=4,
        num_classes=10,
    )
    return model, (torch.randn(_IMAGE),)


def _mobilenet() -> Made:
    model = _torchvision("mobilenetv3").mobilenet_v3_small(width_mult=0.25, num_classes=10)
    return model, (torch.randn(_IMAGE),)


def _resnet() -> Made:
    resnet = _torchvision("resnet")
    model = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], num_classes=10)
    return model, (torch.randn(_IMAGE),)


CONVOLUTIONAL: dict[str, Callable[[], Made]] = {
    "MaxViT": _maxvit,
    "MobileNetV3": _mobilenet,
    "ResNet": _resnet,
}
