# SPDX-License-Identifier: Apache-2.0
"""Linear, embedding, convolution and element-wise ops on 4-bit and 8-bit numbers.

Weights come packed and padded by the lowering: a 4-bit row holds two numbers a byte, plus 8; scales
of groups are [groups, N]; N may be padded, so that the result's declared width counts. Activations
are quantized to int8 (`q8ta`: one scale for the tensor, `dq8ca`: one for each row).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call

_LOW, _HIGH = -128, 127


def quantized(
    x: torch.Tensor, scale: Any, zero_point: Any, low: int = _LOW, high: int = _HIGH
) -> torch.Tensor:
    """round(x / scale) + zero_point, clamped; float32."""
    return torch.clamp(torch.round(x.float() / scale) + zero_point, low, high)


def dequantized(x: torch.Tensor, scale: Any, zero_point: Any) -> torch.Tensor:
    """(x - zero_point) * scale; float32."""
    result: torch.Tensor = (x.float() - zero_point) * scale
    return result


def unpacked_4bit(packed: torch.Tensor, *, high_first: bool = False) -> torch.Tensor:
    """[N, K / 2] bytes as [N, K] numbers of -8 .. 7; the low half of a byte comes first."""
    halves = [packed & 0xF, packed >> 4]
    ordered = halves[::-1] if high_first else halves
    return torch.stack(ordered, dim=-1).flatten(-2).float() - 8


def _group_weight(call: Call, weight: int, scales: int, group: int, width: int) -> torch.Tensor:
    """A 4-bit weight with a scale for each group, as float32 [N, K]."""
    rows = call.out_tensor().dims[-1]
    size = int(call.number(group))
    numbers = unpacked_4bit(call.tensor(weight))[:rows, :width]
    per_group = call.real(scales)[:, :rows].transpose(0, 1)
    return numbers * per_group.repeat_interleave(size, dim=1)[:, :width]


def _bias(call: Call, index: int, width: int) -> torch.Tensor | None:
    if index >= len(call.args) or call.args[index] is None:
        return None
    return call.real(index)[:width]


def linear_q4gsw(call: Call) -> torch.Tensor:
    """et_vk.linear_q4gsw(x, weight, scales, group_size, bias)."""
    x = call.real(0)
    weight = _group_weight(call, 1, 2, 3, x.shape[-1])
    return F.linear(x, weight, _bias(call, 4, weight.shape[0]))


def linear_dq8ca_q4gsw(call: Call) -> torch.Tensor:
    """et_vk.linear_dq8ca_q4gsw(x, scale, zero, weight, sums, scales, group_size, bias)."""
    x = call.real(0)
    scale, zero = (call.real(index).reshape(-1, 1) for index in (1, 2))
    seen = dequantized(quantized(x, scale, zero), scale, zero)
    weight = _group_weight(call, 3, 5, 6, x.shape[-1])
    return F.linear(seen, weight, _bias(call, 7, weight.shape[0]))


def _channel_weight(call: Call, weight: int, scales: int, rows: int) -> torch.Tensor:
    """An int8 weight with a scale for each output channel, as float32; padding cut off."""
    numbers = call.real(weight)[:rows]
    return numbers * call.real(scales)[:rows].reshape(-1, *(1,) * (numbers.dim() - 1))


def _linear(call: Call, x: torch.Tensor, weight: int, scales: int, bias: int) -> torch.Tensor:
    rows = call.out_tensor().dims[-1]
    matrix = _channel_weight(call, weight, scales, rows)[:, : x.shape[-1]]
    return F.linear(x, matrix, _bias(call, bias, rows))


def linear_q8csw(call: Call) -> torch.Tensor:
    """et_vk.linear_q8csw(x, weight, scales, bias)."""
    return _linear(call, call.real(0), weight=1, scales=2, bias=3)


def linear_q8ta_q8csw(call: Call) -> torch.Tensor:
    """et_vk.linear_q8ta_q8csw(x, scale, zero, weight, sums, scales, bias): x is float."""
    scale, zero = call.number(1), call.number(2)
    seen = dequantized(quantized(call.real(0), scale, zero), scale, zero)
    return _linear(call, seen, weight=3, scales=5, bias=6)


def _activated(result: torch.Tensor, activation: Any) -> torch.Tensor:
    if activation not in ("none", "relu"):
        raise ValueError(f"the activation {activation!r} is not known")
    return F.relu(result) if activation == "relu" else result


def q8ta_linear(call: Call) -> torch.Tensor:
    """et_vk.q8ta_linear(x, s, z, weight, sums, scales, out s, out z, bias, activation): int8."""
    x = dequantized(call.tensor(0), call.number(1), call.number(2))
    result = _activated(_linear(call, x, weight=3, scales=5, bias=8), call.args[9])
    return quantized(result, call.number(6), call.number(7))


def q8ta_conv2d(call: Call) -> torch.Tensor:
    """et_vk.q8ta_conv2d(x, s, z, weight [O, K], sums, scales, out s, out z, bias, kernel, ..)."""
    x, rows = _conv_input(call)
    kernel, stride, padding, dilation, groups, activation = call.args[9:15]
    columns = x.shape[1] // int(groups) * kernel[0] * kernel[1]
    weight = _channel_weight(call, 3, 5, rows)[:, :columns].reshape(rows, *kernel, -1)
    weight = weight.permute(0, 3, 1, 2)  # A row has the channels of each place together.
    bias = _bias(call, 8, rows)
    result = F.conv2d(x, weight, bias, stride, padding, dilation, int(groups))
    return quantized(_activated(result, activation), call.number(6), call.number(7))


def q8ta_conv2d_dw(call: Call) -> torch.Tensor:
    """et_vk.q8ta_conv2d_dw: as q8ta_conv2d, depthwise, the weight being [height, width, O]."""
    x, rows = _conv_input(call)
    stride, padding, dilation, groups, activation = call.args[10:15]
    weight = (call.real(3) * call.real(5))[..., :rows].permute(2, 0, 1).unsqueeze(1)
    bias = _bias(call, 8, rows)
    result = F.conv2d(x, weight, bias, stride, padding, dilation, int(groups))
    return quantized(_activated(result, activation), call.number(6), call.number(7))


def q8ta_conv2d_transposed(call: Call) -> torch.Tensor:
    """et_vk.q8ta_conv2d_transposed: as q8ta_conv2d, with an output padding after the padding."""
    x, rows = _conv_input(call)
    kernel, stride, padding, output_padding, dilation, groups, activation = call.args[9:16]
    parts, each = int(groups), x.shape[1] // int(groups)
    weight = _channel_weight(call, 3, 5, rows)[:, : each * kernel[0] * kernel[1]]
    weight = weight.reshape(parts, rows // parts, *kernel, each).permute(0, 4, 1, 2, 3)
    weight = weight.reshape(x.shape[1], rows // parts, *kernel)
    bias = _bias(call, 8, rows)
    result = F.conv_transpose2d(x, weight, bias, stride, padding, output_padding, parts, dilation)
    return quantized(_activated(result, activation), call.number(6), call.number(7))


def choose_qparams(call: Call) -> list[torch.Tensor | None]:
    """torchao.choose_qparams_affine(x, mapping, block, dtype, low, high, ..): a row's scale, zero.

    As `choose_qparams_per_row.glsl` has it: asymmetric, the range widened to hold 0.
    """
    low, high = call.number(4), call.number(5)
    smallest = call.real(0).amin(-1).clamp(max=0)
    largest = call.real(0).amax(-1).clamp(min=0)
    scale = (largest - smallest) / (high - low)
    scale = torch.where((scale == 0) | torch.isinf(1 / scale), torch.tensor(0.1), scale)
    from_smallest, from_largest = low - smallest / scale, high - largest / scale
    nearer = abs(low) - (smallest / scale).abs() < abs(high) - (largest / scale).abs()
    zero = torch.round(torch.where(nearer, from_smallest, from_largest)).clamp(low, high)
    shape = tuple(call.out_tensor().dims)
    return [
        stat.reshape(-1, *shape[1:]) if shape[1:] else stat.reshape(-1) for stat in (scale, zero)
    ]


def _conv_input(call: Call) -> tuple[torch.Tensor, int]:
    x = dequantized(call.tensor(0), call.number(1), call.number(2))
    return x, int(call.out_tensor().dims[-3])


def q8ta_add(call: Call) -> torch.Tensor:
    """et_vk.q8ta_add(a, b, a s, a z, b s, b z, out s, out z, alpha)."""
    a = dequantized(call.tensor(0), call.number(2), call.number(3))
    b = dequantized(call.tensor(1), call.number(4), call.number(5))
    return quantized(a + call.number(8) * b, call.number(6), call.number(7))


def q8ta_relu(call: Call) -> torch.Tensor:
    """et_vk.q8ta_relu(x, s, z, out s, out z)."""
    x = F.relu(dequantized(call.tensor(0), call.number(1), call.number(2)))
    return quantized(x, call.number(3), call.number(4))


def q8ta_pixel_shuffle(call: Call) -> torch.Tensor:
    """et_vk.q8ta_pixel_shuffle(x, s, z, 1 / out s, out z, factor)."""
    x = dequantized(call.tensor(0), call.number(1), call.number(2))
    return quantized(F.pixel_shuffle(x, int(call.number(5))), 1 / call.number(3), call.number(4))


def embedding_q4gsw(call: Call) -> torch.Tensor:
    """et_vk.embedding_q4gsw(weight, scales, group_size, indices, is_linear_weight)."""
    rows = call.tensor(3).long()
    numbers = unpacked_4bit(call.tensor(0)[rows], high_first=not call.args[4])
    scales = call.real(1).reshape(call.tensor(0).shape[0], -1)[rows]
    return numbers * scales.repeat_interleave(int(call.number(2)), dim=-1)


def quantize(call: Call) -> torch.Tensor:
    """quantized_decomposed.quantize_per_{tensor,token}(x, scale, zero, low, high, dtype)."""
    low, high = int(call.number(3)), int(call.number(4))
    return quantized(call.real(0), *_parameters(call), low, high)


def dequantize(call: Call) -> torch.Tensor:
    """quantized_decomposed.dequantize_per_{tensor,token}(x, scale, zero, low, high, dtype, ..)."""
    return dequantized(call.tensor(0), *_parameters(call))


def dequantize_affine(call: Call) -> torch.Tensor:
    """torchao.dequantize_affine(x, block_size, scale, zero, ..): a scale for each block of x."""
    x = call.tensor(0)
    scale = _blocks(call.real(2), x, call.args[1])
    return dequantized(
        x, scale, 0 if call.args[3] is None else _blocks(call.real(3), x, call.args[1])
    )


def quantize_affine(call: Call) -> torch.Tensor:
    """torchao.quantize_affine(x, block_size, scale, zero, dtype, low, high)."""
    x = call.real(0)
    scale = _blocks(call.real(2), x, call.args[1])
    zero = 0 if call.args[3] is None else _blocks(call.real(3), x, call.args[1])
    return quantized(x, scale, zero, int(call.number(5)), int(call.number(6)))


def _blocks(stat: torch.Tensor, x: torch.Tensor, size: list[int]) -> torch.Tensor:
    """A number for each block of x, as a tensor of the shape of x."""
    counts = [dim // block for dim, block in zip(x.shape, size, strict=True)]
    stat = stat.reshape(counts)
    for dim, block in enumerate(size):
        stat = stat.repeat_interleave(block, dim)
    return stat


def _parameters(call: Call) -> tuple[Any, Any]:
    """Scale and zero point: numbers, tensors of one, or a column for each row."""
    scale, zero = (v.float() if torch.is_tensor(v) else v for v in call.args[1:3])
    return scale, zero


OPS: Final = {
    "et_vk.embedding_q4gsw.default": embedding_q4gsw,
    "et_vk.linear_dq8ca_q4gsw.default": linear_dq8ca_q4gsw,
    "et_vk.linear_q4gsw.default": linear_q4gsw,
    "et_vk.linear_q8csw.default": linear_q8csw,
    "et_vk.linear_q8ta_q8csw.default": linear_q8ta_q8csw,
    "et_vk.q4gsw_linear.default": linear_q4gsw,
    "et_vk.q8ta_add.default": q8ta_add,
    "et_vk.q8ta_conv2d.default": q8ta_conv2d,
    "et_vk.q8ta_conv2d_dw.default": q8ta_conv2d_dw,
    "et_vk.q8ta_conv2d_general.default": q8ta_conv2d,
    "et_vk.q8ta_conv2d_im2col.default": q8ta_conv2d,
    "et_vk.q8ta_conv2d_pw.default": q8ta_conv2d,
    "et_vk.q8ta_conv2d_transposed.default": q8ta_conv2d_transposed,
    "et_vk.q8ta_linear.default": q8ta_linear,
    "et_vk.q8ta_linear_gemv.default": q8ta_linear,
    "et_vk.q8ta_pixel_shuffle.default": q8ta_pixel_shuffle,
    "et_vk.q8ta_relu.default": q8ta_relu,
    "quantized_decomposed.dequantize_per_tensor.default": dequantize,
    "quantized_decomposed.dequantize_per_tensor.tensor": dequantize,
    "quantized_decomposed.dequantize_per_token.default": dequantize,
    "quantized_decomposed.quantize_per_tensor.default": quantize,
    "quantized_decomposed.quantize_per_tensor.tensor": quantize,
    "quantized_decomposed.quantize_per_token.default": quantize,
    "torchao.choose_qparams_affine.default": choose_qparams,
    "torchao.dequantize_affine.default": dequantize_affine,
    "torchao.quantize_affine.default": quantize_affine,
}
