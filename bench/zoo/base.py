# SPDX-License-Identifier: Apache-2.0
"""What models of the zoo are made with."""

from __future__ import annotations

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


def causal() -> Tensor:
    """A 4-D float mask."""
    mask = torch.full((T, T), -1e4).triu(1)
    return mask[None, None]
