# SPDX-License-Identifier: Apache-2.0
"""The modules of the table in models.py: norms in every form that models write."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

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


class FloatScale(nn.Module):
    """norm(x) * (1.0 + s), s an input: stays in textures, where `1 + s` goes to buffers."""

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        return rms(x) * (1.0 + s)


class CastWeight(Parameter):
    """norm(x) * w.to(x.dtype), w a float32 parameter."""

    def forward(self, x: Tensor) -> Tensor:
        return rms(x) * self.weight.to(x.dtype)


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


class LayerNormRuntimeWeight(nn.Module):
    """layer_norm whose weight is an input and whose bias is a parameter."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(rand(d, seed=5))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        return functional.layer_norm(x, (x.shape[-1],), w, self.bias, EPS)


class LinearRuntime(nn.Module):
    """x @ w.T, w an input: a broken contract that is no norm's."""

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        return functional.linear(x, w)


class Large(nn.Module):
    """A linear layer with 4 MB of weights, then a norm."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.linear = nn.Linear(1024, 1024, bias=False)
        self.linear.weight.data = rand(1024, 1024, seed=3)
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.linear(x))
