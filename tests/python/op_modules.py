# SPDX-License-Identifier: Apache-2.0
"""The modules of the table in op_models.py: what else ET-VK prepacks, as models write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from norms import rand

CHANNELS, GROUPS = 6, 3


class GroupNorm(nn.Module):
    """A group norm of an image, with weight and bias from outside, from within, or missing."""

    def __init__(self, weight: bool = False, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(CHANNELS, seed=3) + 1) if weight else None
        self.bias = nn.Parameter(rand(CHANNELS, seed=5)) if bias else None

    def forward(self, x: Tensor, *given: Tensor) -> Tensor:
        rest = list(given)
        weight = self.weight if self.weight is not None or not rest else rest.pop(0)
        bias = self.bias if self.bias is not None or not rest else rest.pop(0)
        return functional.group_norm(x, GROUPS, weight, bias)


class GroupNormWeight(nn.Module):
    """A group norm with a run-time weight, and a bias that is a parameter or missing."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.bias = nn.Parameter(rand(CHANNELS, seed=5)) if bias else None

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.group_norm(x, GROUPS, weight, self.bias)


class BatchNorm(nn.Module):
    """A batch norm with its own statistics, and weight and bias as they are given."""

    def __init__(self, affine: bool = False) -> None:
        super().__init__()
        self.register_buffer("mean", rand(CHANNELS, seed=9))
        self.register_buffer("var", rand(CHANNELS, seed=11).abs() + 0.5)
        self.weight = nn.Parameter(rand(CHANNELS, seed=3) + 1) if affine else None
        self.bias = nn.Parameter(rand(CHANNELS, seed=5)) if affine else None

    def forward(
        self, x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        weight = self.weight if weight is None else weight
        bias = self.bias if bias is None else bias
        return functional.batch_norm(x, self.mean, self.var, weight, bias)


class BatchNormStatistics(nn.Module):
    """A batch norm whose mean and variance are inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(CHANNELS, seed=3) + 1)
        self.bias = nn.Parameter(rand(CHANNELS, seed=5))

    def forward(self, x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return functional.batch_norm(x, mean, var.abs() + 0.5, self.weight, self.bias)


class Linear(nn.Module):
    """x @ w.T + b, w and b inputs, or b a parameter."""

    def __init__(self, bias: int = 0) -> None:
        super().__init__()
        self.bias = nn.Parameter(rand(bias, seed=5)) if bias else None

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return functional.linear(x, weight, self.bias if bias is None else bias)


class LinearBias(nn.Module):
    """x @ w.T + b, w a parameter and b an input."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(rows, columns, seed=3))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        return functional.linear(x, self.weight, bias)


class Embedding(nn.Module):
    """Rows of a table that is an input, by indices of any rank."""

    def forward(self, table: Tensor, indices: Tensor) -> Tensor:
        return functional.embedding(indices, table)


class Calls(nn.Module):
    """A function of inputs."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


class Applies(nn.Module):
    """A function of inputs and of one parameter, `weight`."""

    def __init__(self, function: Callable[..., Tensor], *weight: int) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(rand(*weight, seed=3))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(self.weight, *inputs)


class Table(nn.Module):
    """Rows of a table that is a parameter, doubled."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.table = nn.Parameter(rand(rows, columns, seed=3))

    def forward(self, indices: Tensor) -> Tensor:
        return functional.embedding(indices, self.table) * 2.0


class EmbeddingComputed(nn.Module):
    """Rows of a table that is computed from an input."""

    def forward(self, table: Tensor, indices: Tensor) -> Tensor:
        return functional.embedding(indices, torch.sin(table)) * 2.0


class Convolution(nn.Module):
    """A convolution whose weight is an input."""

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.conv2d(x, weight)


class GroupedConvolution(nn.Module):
    """A convolution in groups, its weight a parameter."""

    def __init__(
        self, weight: tuple[int, ...], groups: int, bias: int = 0, transposed: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(*weight, seed=3))
        self.bias = nn.Parameter(rand(bias, seed=5)) if bias else None
        self.groups = groups
        self.function = functional.conv_transpose2d if transposed else functional.conv2d

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.weight, self.bias, groups=self.groups)


class Depthwise(nn.Module):
    """A convolution with a kernel for each channel, a parameter."""

    def __init__(self, *kernel: int, channels: int, **options: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(channels, 1, *kernel, seed=3))
        self.options = {"groups": channels, **options}

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight, **self.options)


class Pad(nn.Module):
    """A pad whose length is the length of an input."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.pad(x, (0, 0, 0, x.shape[-2])) * 2.0


class LeftFactor(nn.Module):
    """b + w @ x, w a parameter and b an input."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(rows, columns, seed=3))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        return torch.addmm(bias, self.weight, x)
