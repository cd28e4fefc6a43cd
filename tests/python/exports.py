# SPDX-License-Identifier: Apache-2.0
"""Small models that stock's partitioner lowers to ops of the contract; see also models.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (registers the ops)
import torch
import torchao.quantization.quant_primitives  # noqa: F401  (registers the ops)
from executorch.backends.vulkan import custom_ops_lib  # noqa: F401  (registers the ops)
from torch import Tensor, nn
from torch.nn import functional
from torchao.quantization import Int8DynamicActivationIntxWeightConfig, PerGroup, quantize_

from norms import rand

_Q = torch.ops.quantized_decomposed


class Calls(nn.Module):
    """A function of itself and its inputs, with these parameters."""

    def __init__(self, function: Callable[..., Tensor], parts: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, nn.Parameter(part, requires_grad=False))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(self, *inputs)


@dataclass(frozen=True)
class Export:
    """A model, its inputs, and the op of the contract that it becomes."""

    op: str
    function: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]
    parts: Mapping[str, Tensor]

    def make(self) -> nn.Module:
        """The module."""
        return Calls(self.function, self.parts)


class QuantizedLinear(Export):
    """A linear op as torchao quantizes it: weights of four bits, inputs of eight as they come."""

    def make(self) -> nn.Module:
        """The module."""
        module = nn.Sequential(nn.Linear(64, 24))
        config = Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32))
        quantize_(module, config, lambda part, name: isinstance(part, nn.Linear))
        return module


def whole(*shape: int, size: int = 3) -> Tensor:
    """Whole numbers."""
    return (rand(*shape) * size).round()


def seen(x: Tensor) -> Tensor:
    """Quantized to eight bits, and dequantized.

    Stock would take a scale of 1.0 for the groups of a convolution too, which aborts.
    """
    parts = (0.5, 3, -128, 127, torch.int8)
    return _Q.dequantize_per_tensor.default(_Q.quantize_per_tensor.default(x, *parts), *parts)


def eight(*shape: int, axis: int = 0, bias: int = 0) -> dict[str, Tensor]:
    """A weight of eight bits, with a scale for each channel."""
    size = shape[axis]
    parts = {
        "w": whole(*shape).to(torch.int8),
        "s": torch.ones(size),
        "z": torch.zeros(size, dtype=torch.int64),
    }
    return {**parts, **({"b": rand(bias)} if bias else {})}


def by_channel(m: Any, axis: int = 0) -> Tensor:
    """The weight of eight bits."""
    return _Q.dequantize_per_channel.default(m.w, m.s, m.z, axis, -128, 127, torch.int8)


def four(rows: int, size: int, group: int) -> dict[str, Tensor]:
    """A weight of four bits, with a scale for each group of a row."""
    shape = (rows, size // group)
    return {
        "w": whole(rows, size).to(torch.int8),
        "s": torch.ones(shape),
        "z": torch.zeros(shape, dtype=torch.int8),
    }


def by_group(m: Any, group: int) -> Tensor:
    """The weight of four bits."""
    block = [1, group]
    return torch.ops.torchao.dequantize_affine.default(m.w, block, m.s, m.z, torch.int8, -8, 7)


def _image(x: Tensor, w: Tensor, b: Tensor | None = None, **rest: Any) -> Tensor:
    return seen(functional.conv2d(seen(x), w, b, **rest)) * 2


ROWS, ROW, IMAGE = whole(3, 16), whole(1, 16), whole(1, 8, 6, 6)
TOKENS = torch.tensor([[1, 2, 5]])

EXPORTS: tuple[Export, ...] = (
    Export(
        "et_vk.q8ta_linear.default",
        lambda m, x: seen(functional.linear(seen(x), by_channel(m), m.b)) * 2,
        (ROWS,),
        eight(8, 16, bias=8),
    ),
    Export(
        "et_vk.q8ta_linear_gemv.default",
        lambda m, x: seen(functional.linear(seen(x), by_channel(m), m.b)) * 2,
        (ROW,),
        eight(8, 16, bias=8),
    ),
    Export(
        "et_vk.linear_q8ta_q8csw.default",
        lambda m, x: functional.linear(seen(x), by_channel(m), m.b) * 2,
        (ROWS,),
        eight(8, 16, bias=8),
    ),
    Export(
        "aten._weight_int8pack_mm.default",  # the weight needs eight bits
        lambda m, x: functional.linear(x, by_channel(m), m.b) * 2,
        (ROWS,),
        {**eight(8, 16, bias=8), "w": whole(8, 16, size=100).to(torch.int8)},
    ),
    Export(
        "et_vk.linear_q4gsw.default",
        lambda m, x: functional.linear(x, by_group(m, 8)) * 2,
        (ROWS,),
        four(8, 16, 8),
    ),
    QuantizedLinear("et_vk.linear_dq8ca_q4gsw.default", functional.linear, (rand(5, 64),), {}),
    Export(
        "et_vk.embedding_q4gsw.default",
        lambda m, i: functional.embedding(i, by_group(m, 32)) * 2,
        (TOKENS,),
        four(8, 64, 32),
    ),
    Export(
        "et_vk.q8ta_conv2d.default",
        lambda m, x: _image(x, by_channel(m), m.b, padding=1),
        (IMAGE,),
        eight(5, 8, 3, 3, bias=5),
    ),
    Export(
        "et_vk.q8ta_conv2d_pw.default",
        lambda m, x: _image(x, by_channel(m), m.b),
        (IMAGE,),
        eight(8, 8, 1, 1, bias=8),
    ),
    Export(
        "et_vk.q8ta_conv2d_dw.default",
        lambda m, x: _image(x, by_channel(m), m.b, groups=8),
        (IMAGE,),
        eight(8, 1, 3, 3, bias=8),
    ),
    Export(
        "et_vk.q8ta_conv2d_transposed.default",
        lambda m, x: seen(functional.conv_transpose2d(seen(x), by_channel(m, 1), m.b)) * 2,
        (IMAGE,),
        eight(8, 8, 3, 3, axis=1, bias=8),
    ),
    Export(
        "et_vk.conv_with_clamp.default",
        lambda m, x: functional.relu(functional.conv2d(x, m.w, m.b)),
        (IMAGE,),
        {"w": rand(8, 8, 3, 3), "b": rand(8)},
    ),
    Export(
        "et_vk.linear_qcs4w.default",  # the weight fits four bits
        lambda m, x: functional.linear(x, by_channel(m)) * 2,
        (ROWS,),
        eight(8, 16),
    ),
)
