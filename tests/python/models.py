# SPDX-License-Identifier: Apache-2.0
"""Small models around a norm: a table that the tests, the demo and the benchmarks share.

Each row is a module, its inputs and how it is lowered with the stock `VulkanPartitioner`, and says
what stock does with the result: "right", "abort" (it throws while the method loads) or "wrong"
(silently wrong values). Weights and inputs are seeded: the same row always gives the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

Stock = Literal["right", "abort", "wrong"]
Inputs = tuple[Tensor, ...]

EPS = 1e-6


def rms(x: Tensor) -> Tensor:
    """The norm as models write it, over the last dim, in x's dtype."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS)


def rand(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 7) -> Tensor:
    """Uniform in [-1, 1), the same for the same shape and seed."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.rand(*shape, generator=generator) * 2 - 1).to(dtype)


class Parameter(nn.Module):
    """norm(x) * w, w a parameter of any shape."""

    def __init__(self, *shape: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(*shape, dtype=dtype, seed=3) + 1)

    def forward(self, x: Tensor) -> Tensor:
        return rms(x) * self.weight


class OnePlus(Parameter):
    """norm(x) * (1.0 + w), as Gemma has it."""

    def forward(self, x: Tensor) -> Tensor:
        return rms(x) * (1.0 + self.weight)


class Scalar(nn.Module):
    """norm(x) * 0.5."""

    def forward(self, x: Tensor) -> Tensor:
        return rms(x) * 0.5


class Runtime(nn.Module):
    """norm(x) * s, s an input."""

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        return rms(x) * s


class RuntimeLeft(nn.Module):
    """s * norm(x), s an input."""

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        return s * rms(x)


class Scale(nn.Module):
    """norm(x) * (1 + s), s an input: adaptive norms."""

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        return rms(x) * (1 + s)


class Gated(nn.Module):
    """norm(x) * silu(z)."""

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return rms(x) * functional.silu(z)


class Shared(nn.Module):
    """Two norms with one computed weight."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(d, seed=3))

    def forward(self, x: Tensor) -> Tensor:
        w = 1.0 + self.weight
        return rms(torch.sin(rms(x) * w)) * w


class SharedLeaf(nn.Module):
    """Two norms with one parameter."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(d, seed=3) + 1)

    def forward(self, x: Tensor) -> Tensor:
        return rms(torch.sin(rms(x) * self.weight)) * self.weight


class Split(nn.Module):
    """Two delegates: what lies between the norms has no Vulkan op and runs on the CPU."""

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        y = rms(x) * (1 + s)
        return rms(torch.cumsum(y, -1)) * (1 - s)


class DiTBlock(nn.Module):
    """layer_norm without affine, then scale and shift, as diffusion transformers have it."""

    def forward(self, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        y = functional.layer_norm(x, (x.shape[-1],), eps=EPS)
        return y * (1 + scale) + shift


class LayerNorm(nn.Module):
    """nn.LayerNorm with weight and bias, or only a weight."""

    def __init__(self, d: int, bias: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d, eps=EPS, bias=bias)
        self.norm.weight.data = rand(d, seed=3) + 1
        if bias:
            self.norm.bias.data = rand(d, seed=5)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


class LayerNormRuntime(nn.Module):
    """layer_norm whose weight and bias are computed from inputs."""

    def forward(self, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return functional.layer_norm(x, (x.shape[-1],), 1 + w, torch.sin(b), EPS)


@dataclass(frozen=True)
class Model:
    """One row of the table.

    Attributes:
        make: makes the module, in eval mode.
        inputs: makes the inputs of `forward`; with `methods`, of every method.
        stock: what a stock delegate does with the stock-lowered file.
        codes: codes of the findings, one a faulty argument, in the file's order.
        ops: the ops of each delegate as stock lowers them.
        repaired: the ops of each delegate after repair; None where they are `ops`.
        options: compile options of the VulkanPartitioner.
        dynamic: `dynamic_shapes` of `torch.export.export`.
        methods: further methods of the program, by name ("forward" is `make`).
        tolerance: relative to the largest value of eager's result.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    stock: Stock = "right"
    codes: tuple[str, ...] = ()
    ops: tuple[tuple[str, ...], ...] = ()
    repaired: tuple[tuple[str, ...], ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    dynamic: Any = None
    methods: Mapping[str, Callable[[], nn.Module]] = field(default_factory=dict)
    tolerance: float = 1e-5
