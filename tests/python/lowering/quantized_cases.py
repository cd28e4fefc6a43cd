# SPDX-License-Identifier: Apache-2.0
"""Quantized patterns that stock fuses without asking whether its op computes them.

Activations and weights are small whole numbers, and so are scales and results: quantizing loses
nothing, and a fused op, a plain op and eager give the same numbers.
"""

from __future__ import annotations

from typing import Any

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (registers the ops)
import torch
import torchao.quantization.quant_primitives  # noqa: F401  (registers the ops)
from lowering_cases import Case, case
from torch import Tensor, nn
from torch.nn import functional

K, N = 16, 8
_Q = torch.ops.quantized_decomposed


def whole(*shape: int, size: int = 1, seed: int = 0) -> Tensor:
    """Whole numbers from -size to size."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-size, size + 1, shape, generator=generator).float()


def constant(values: Tensor) -> nn.Parameter:
    """A parameter of any dtype."""
    return nn.Parameter(values, requires_grad=False)


ROWS, IMAGE, WIDE = whole(3, K), whole(1, 8, 6, 6), whole(1, 16, 4, 4)


def stored(x: Tensor, zero: int = 3) -> Tensor:
    """Quantized, one step being 1."""
    return _Q.quantize_per_tensor.default(x, 1.0, zero, -128, 127, torch.int8)


def loaded(x: Tensor, zero: int = 3) -> Tensor:
    """Dequantized."""
    return _Q.dequantize_per_tensor.default(x, 1.0, zero, -128, 127, torch.int8)


def seen(x: Tensor) -> Tensor:
    """Quantized and dequantized."""
    return loaded(stored(x))


def unsigned(x: Tensor) -> Tensor:
    """Quantized to eight bits without a sign, and dequantized."""
    parts = (1.0, 100, 0, 255, torch.uint8)
    return _Q.dequantize_per_tensor.default(_Q.quantize_per_tensor.default(x, *parts), *parts)


def by_channel(m: Any, axis: int = 0) -> Tensor:
    """The weight."""
    return _Q.dequantize_per_channel.default(m.w, m.s, m.z, axis, -128, 127, torch.int8)


def by_group(m: Any, group: int) -> Tensor:
    """The weight of four bits."""
    block = [1, group]
    return torch.ops.torchao.dequantize_affine.default(m.w, block, m.s, m.z, torch.int8, -8, 7)


def eight(*shape: int, axis: int = 0, zero: int = 0, **rest: Tensor) -> dict[str, Any]:
    """A weight with scales of 1 and 2, and a zero point, for each channel."""
    size = shape[axis]
    parts = {
        "w": whole(*shape, seed=2).to(torch.int8),
        "s": 1.0 + (torch.arange(size) % 2),
        "z": torch.full((size,), zero),
        **rest,
    }
    return {name: constant(part) for name, part in parts.items()}


def four(rows: int, size: int, group: int, zero: int = 0, **rest: Tensor) -> dict[str, Any]:
    """A weight with scales of 1 and 2, and a zero point, for each group of a row."""
    groups = size // group
    parts = {
        "w": whole(rows, size, size=7, seed=2).to(torch.int8),
        "s": 1.0 + (torch.arange(rows * groups).reshape(rows, groups) % 2),
        "z": torch.full((rows, groups), zero, dtype=torch.int8),
        **rest,
    }
    return {name: constant(part) for name, part in parts.items()}


def _linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    return seen(functional.linear(seen(x), w, b)) * 2


def _image(x: Tensor, w: Tensor, b: Tensor | None = None, **rest: Any) -> Tensor:
    return seen(functional.conv2d(seen(x), w, b, **rest)) * 2


Q = "quantized_decomposed.quantize_per_tensor"
DQ = "quantized_decomposed.dequantize_per_tensor"
PLAIN = "prepack linear mul"
TURN = (
    " slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor neg slice_copy.Tensor cat mul add"
    " cat"
)
LINEAR_ONCE = [("runtime_linear", "evaluated")]
WEIGHT_ONCE = [("evaluate_weight", "evaluated")]
APART = [("runtime_linear", "rewritten")]
ONCE = [("constant_value", "evaluated")]

LINEAR: list[Case] = [
    case("q_linear", lambda m, x: _linear(x, by_channel(m)), [ROWS],
         f"prepack {Q} q8ta_linear {DQ} mul",
         [],
         eight(N, K)),
    case("q_linear_zero_points", lambda m, x: _linear(x, by_channel(m)), [ROWS],
         PLAIN,
         ONCE,
         eight(N, K, zero=1)),
    case("q_linear_adapter", lambda m, x: _linear(x, by_channel(m) + m.a @ m.b), [ROWS],
         PLAIN,
         LINEAR_ONCE, eight(N, K, a=whole(N, 2), b=whole(2, K))),
    case("q_linear_scaled", lambda m, x: _linear(x, by_channel(m) * m.a), [ROWS],
         PLAIN,
         LINEAR_ONCE,
         eight(N, K, a=whole(N, 1))),
    case("q_linear_axis", lambda m, x: _linear(x, by_channel(m, 1)), [ROWS],
         PLAIN,
         LINEAR_ONCE,
         eight(K, K, axis=1)),
    case("q_mm_columns", lambda m, x: seen(seen(x) @ by_channel(m, 1)) * 2, [ROWS],
         "prepack mm mul",
         ONCE,
         eight(K, K, axis=1)),
    case("q_mm_rectangle", lambda m, x: seen(seen(x) @ by_channel(m)) * 2, [ROWS],
         "prepack mm mul",
         ONCE,
         eight(K, N)),
    case("q_linear_computed_bias", lambda m, x: _linear(x, by_channel(m), m.b * 2), [ROWS],
         PLAIN,
         LINEAR_ONCE, eight(N, K, b=whole(N))),
    case("q_linear_runtime_bias", lambda m, x, b: _linear(x, by_channel(m), b), [ROWS, whole(N)],
         "prepack linear add mul",
         APART, eight(N, K)),
    case("q_linear_unsigned",
         lambda m, x: seen(functional.linear(unsigned(x), by_channel(m))) * 2, [ROWS],
         PLAIN,
         LINEAR_ONCE,
         eight(N, K)),
    case("q_linear_float_result", lambda m, x: functional.linear(seen(x), by_channel(m)) * 2,
         [ROWS],
         PLAIN,
         LINEAR_ONCE, eight(N, K)),
    case("q_linear_shared",
         lambda m, x: _linear(x, by_channel(m), m.b) - _linear(x * 2, by_channel(m), m.b),
         [ROWS],
         f"prepack prepack prepack {Q} q8ta_linear {DQ} mul mul {Q} q8ta_linear {DQ} mul "
         "sub",
         [], eight(5, K, b=whole(5))),
    case("q_addmm_factors",
         lambda m, x: seen(torch.addmm(m.b, seen(x), by_channel(m).t(), beta=2, alpha=3)) * 2,
         [ROWS],
         "prepack prepack addmm mul",
         APART + ONCE, eight(N, K, b=whole(N))),
    case("q4_linear", lambda m, x: functional.linear(x, by_group(m, 8)) * 2, [ROWS],
         "prepack linear_q4gsw mul",
         [],
         four(N, K, 8)),
    case("q4_linear_zero_points", lambda m, x: functional.linear(x, by_group(m, 8)) * 2, [ROWS],
         PLAIN,
         ONCE, four(N, K, 8, zero=1)),
    case("q4_linear_adapter",
         lambda m, x: functional.linear(x, by_group(m, 8) + m.a @ m.b) * 2, [ROWS],
         PLAIN,
         LINEAR_ONCE,
         four(N, K, 8, a=whole(N, 2), b=whole(2, K))),
    case("q4_linear_five", lambda m, x: functional.linear(x, by_group(m, 8)) * 2, [ROWS],
         PLAIN,
         LINEAR_ONCE, four(5, K, 8)),
    case("q4_linear_groups_of_two", lambda m, x: functional.linear(x, by_group(m, 2)) * 2, [ROWS],
         PLAIN,
         LINEAR_ONCE, four(N, K, 2)),
    case("q4_linear_groups_of_four", lambda m, x: functional.linear(x, by_group(m, 4)) * 2, [ROWS],
         "prepack linear_q4gsw mul",
         [], four(N, K, 4)),
    case("q4_linear_shared",
         lambda m, x: functional.linear(x, by_group(m, 8))
         + functional.linear(x * x, by_group(m, 8)),
         [ROWS],
         "linear_q4gsw mul linear_q4gsw add",
         [], four(N, K, 8)),
]  # fmt: skip

CONVOLUTION: list[Case] = [
    case("q_conv", lambda m, x: _image(x, by_channel(m), m.b, padding=1), [IMAGE],
         f"prepack {Q} q8ta_conv2d {DQ} mul",
         [],
         eight(5, 8, 3, 3, b=whole(5))),
    case("q_conv_transposed",
         lambda m, x: seen(functional.conv_transpose2d(seen(x), by_channel(m, 1))) * 2, [IMAGE],
         f"prepack {Q} q8ta_conv2d_transposed {DQ} mul",
         [], eight(8, 8, 3, 3, axis=1)),
    case("q_conv_depthwise_fours", lambda m, x: _image(x, by_channel(m), groups=8), [IMAGE],
         f"prepack {Q} q8ta_conv2d_dw {DQ} mul",
         [], eight(8, 1, 3, 3)),
    case("q_conv_zero_points", lambda m, x: _image(x, by_channel(m)), [IMAGE],
         "prepack convolution mul",
         ONCE,
         eight(8, 8, 3, 3, zero=1)),
    case("q_conv_scaled", lambda m, x: _image(x, by_channel(m) * m.a), [IMAGE],
         "prepack convolution mul",
         WEIGHT_ONCE,
         eight(8, 8, 3, 3, a=whole(8, 1, 1, 1))),
    case("q_conv_axis", lambda m, x: _image(x, by_channel(m, 1)), [IMAGE],
         "prepack convolution mul",
         WEIGHT_ONCE,
         eight(8, 8, 3, 3, axis=1)),
    case("q_conv_computed_bias", lambda m, x: _image(x, by_channel(m), m.b * 2), [IMAGE],
         "prepack convolution mul",
         WEIGHT_ONCE, eight(8, 8, 3, 3, b=whole(8))),
    case("q_conv_1d", lambda m, x: seen(functional.conv1d(seen(x), by_channel(m))) * 2,
         [whole(1, 8, 9)],
         "prepack convolution mul",
         WEIGHT_ONCE, eight(8, 8, 3)),
    case("q_conv_depthwise", lambda m, x: _image(x, by_channel(m), groups=6), [IMAGE[:, :6]],
         "prepack convolution mul",
         WEIGHT_ONCE, eight(6, 1, 3, 3)),
    case("q_conv_relu_twice",
         lambda m, x: (lambda y: seen(y) + y)(
             functional.relu(functional.conv2d(seen(x), by_channel(m)))), [IMAGE],
         "conv_with_clamp add",
         WEIGHT_ONCE,
         eight(8, 8, 3, 3)),
    case("q_conv_shared", lambda m, x: _image(x, by_channel(m)) - _image(x * 2, by_channel(m)),
         [IMAGE],
         f"prepack prepack prepack {Q} q8ta_conv2d_pw {DQ} mul mul {Q} q8ta_conv2d_pw {DQ} "
         "mul sub",
         [], eight(8, 8, 1, 1)),
]  # fmt: skip

ELEMENTS: list[Case] = [
    case("q_add", lambda m, x, y: seen(seen(x) + seen(y)) * 2, [IMAGE, IMAGE.flip(-1)],
         f"prepack {Q} {Q} q8ta_add {DQ} mul",
         []),
    case("q_add_alpha", lambda m, x, y: seen(torch.add(seen(x), seen(y), alpha=2)) * 2,
         [IMAGE, IMAGE.flip(-1)],
         "prepack add mul",
         []),
    case("q_add_relu", lambda m, x, y: seen(functional.relu(seen(x) + seen(y))) * 2,
         [IMAGE, IMAGE.flip(-1) - 1],
         "prepack add relu mul",
         []),
    case("q_add_row", lambda m, x, y: seen(seen(x) + seen(y)) * 2, [IMAGE, whole(6)],
         "prepack add mul",
         []),
    case("q_add_constant", lambda m, x: seen(seen(x) + loaded(m.w)) * 2, [IMAGE],
         f"prepack prepack {Q} q8ta_add {DQ} mul",
         [],
         {"w": constant(whole(1, 8, 6, 6, size=20).to(torch.int8))}),
    case("q_shuffle", lambda m, x: seen(functional.pixel_shuffle(seen(x), 2)) * 2, [WIDE],
         f"prepack {Q} q8ta_pixel_shuffle {DQ} mul",
         []),
    case("q_shuffle_three", lambda m, x: seen(functional.pixel_shuffle(seen(x), 3)) * 2,
         [whole(1, 18, 4, 4)],
         "prepack pixel_shuffle mul",
         []),
    case("q_shuffle_rank_3", lambda m, x: seen(functional.pixel_shuffle(seen(x), 2)) * 2,
         [WIDE[0]],
         "prepack pixel_shuffle mul",
         []),
]  # fmt: skip

TOKENS = torch.tensor([[1, 2, 5]])
EMBEDDING: list[Case] = [
    case("q4_embedding", lambda m, i: functional.embedding(i, by_group(m, 32)) * 2, [TOKENS],
         "prepack embedding_q4gsw mul",
         [], four(8, 64, 32)),
    case("q4_embedding_zero_points",
         lambda m, i: functional.embedding(i, by_group(m, 32)) * 2, [TOKENS],
         "prepack embedding mul",
         ONCE,
         four(8, 64, 32, zero=1)),
    case("q4_embedding_tied",
         lambda m, i: functional.linear(functional.embedding(i, by_group(m, 32)), by_group(m, 32)),
         [TOKENS],
         "embedding_q4gsw linear_q4gsw view_copy",
         [], four(8, 64, 32)),
]  # fmt: skip

QUANTIZED_CASES: list[Case] = [*LINEAR, *CONVOLUTION, *ELEMENTS, *EMBEDDING]
