# SPDX-License-Identifier: Apache-2.0
"""RMS, layer, group and batch norm.

"ideal" computes what the graph means: the normalized input, times the weight, plus the bias, as
broadcasting has it. "stock" computes what the shaders do with a weight that is not one row of the
input's width, see `stock.norm_operand`; and in the dtypes they do it in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from etvk_guard.reference import stock
from etvk_guard.reference.dtypes import DEFAULT_LAYOUT, WIDTH_PACKED

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call

_IMAGE_RANK: Final = 4


def rms_norm(call: Call) -> torch.Tensor:
    """et_vk.rms_norm(x, weight, eps): in float32 throughout (`rms_norm_*.glsl`)."""
    eps = call.number(2)
    if not call.stock:
        return _rms(call.real(0), eps) * call.real(1)
    if not call.is_buffer(0) and call.declared(0).layout not in (WIDTH_PACKED, DEFAULT_LAYOUT):
        raise call.abort("stock aborts while loading: rms_norm of a texture not packed by width")
    x, weight = _as_read(call, 0), _norm_operand(call, 1)
    return _written(call, _rms(x.float(), eps) * weight.float())


def _rms(x: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def layer_norm(call: Call) -> list[torch.Tensor | None]:
    """aten.native_layer_norm(x, normalized_shape, weight, bias, eps): result, mean and rstd."""
    eps = call.number(4)
    if not call.stock:
        return _layer_norm_ideal(call, eps)
    if len(call.args[1]) > 1:
        raise call.abort("stock aborts while loading: native_layer_norm over more than one dim")
    x, weight, bias = _as_read(call, 0), _norm_operand(call, 2), _norm_operand(call, 3)
    half_buffer = call.is_buffer(0) and call.out_dtype() == torch.float16
    normalized, mean, rstd = _layer_half(x, eps) if half_buffer else _layer(x.float(), 1, eps)
    result = normalized * weight.to(normalized.dtype) + bias.to(normalized.dtype)
    return [_written(call, result), mean, rstd]


def _layer_norm_ideal(call: Call, eps: float) -> list[torch.Tensor | None]:
    result, mean, rstd = _layer(call.real(0), len(call.args[1]), eps)
    if call.args[2] is not None:
        result = result * call.real(2)
    if call.args[3] is not None:
        result = result + call.real(3)
    return [result, mean, rstd]


def _layer(x: torch.Tensor, dims: int, eps: float) -> tuple[torch.Tensor, ...]:
    over = tuple(range(-dims, 0))
    mean = x.mean(over, keepdim=True)
    rstd = torch.rsqrt((x - mean).square().mean(over, keepdim=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _layer_half(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
    """The buffer shader in half: each step, the sums too, is rounded to half and may overflow."""
    width = x.shape[-1]
    mean = x.float().sum(-1, keepdim=True).half() / width
    delta = x - mean
    variance = (delta * delta).float().sum(-1, keepdim=True).half() / width
    rstd = (variance + torch.tensor(eps).half()).float().pow(-0.5).half()
    return delta * rstd, mean, rstd


def _as_read(call: Call, index: int) -> torch.Tensor:
    """A tensor as the shader reads it, which is of the result's dtype."""
    tensor = call.tensor(index)
    return stock.reinterpreted(tensor, call.out_dtype()) if call.is_buffer(0) else tensor


def _norm_operand(call: Call, index: int) -> torch.Tensor:
    """A prepacked weight or bias as the shader reads it: one row of the input's width."""
    width = call.tensor(0).shape[-1]
    return stock.norm_operand(_as_read(call, index), width, buffer=call.is_buffer(0))


def _written(call: Call, result: torch.Tensor) -> torch.Tensor:
    """The result as it lies in the output.

    Where the input has another size than declared, the output is resized to it; else the output
    keeps its declared dims, and what the input's shape does not cover is never written.
    """
    x = call.tensor(0)
    if tuple(x.shape) != tuple(call.declared(0).dims):
        return result
    dims = tuple(call.out_tensor().dims)
    return stock.written_in(result, dims, buffer=call.is_buffer(0))


def group_norm(call: Call) -> list[torch.Tensor | None]:
    """aten.native_group_norm(x, weight, bias, N, C, HxW, group, eps): result, mean and rstd.

    Of an input of other than four dims the shaders take another dim for the channels, and count
    groups in it: what comes of it is not followed here, but marked as never written.
    """
    x, groups = call.real(0), int(call.number(6))
    if call.stock and x.dim() != _IMAGE_RANK:
        return [torch.full_like(x, stock.POISON), None, None]
    rows = x.reshape(x.shape[0], groups, -1)
    mean = rows.mean(-1, keepdim=True)
    # From the mean of the squares, as group_norm_reduce_texture.glsl has it.
    variance = rows.square().mean(-1, keepdim=True) - mean.square()
    rstd = torch.rsqrt(variance + call.number(7))
    mean, rstd = (stat.to(call.out_dtype(1)).float() for stat in (mean, rstd))
    result = ((rows - mean) * rstd).reshape(x.shape)
    result = _per_channel(result, call, weight=1, bias=2)
    return [result, mean.squeeze(-1), rstd.squeeze(-1)]


def batch_norm(call: Call) -> list[torch.Tensor | None]:
    """aten._native_batch_norm_legit_no_training(x, weight, bias, mean, var, momentum, eps)."""
    x = call.real(0)
    if call.stock and x.dim() != _IMAGE_RANK:
        message = "stock aborts while loading: batch norm of a tensor that is not 4-D"
        raise call.abort(message, "EG109")
    shape = (1, -1) + (1,) * (x.dim() - 2)
    mean, variance = call.real(3).reshape(shape), call.real(4).reshape(shape)
    result = (x - mean) / torch.sqrt(variance + call.number(6))
    return [_per_channel(result, call, weight=1, bias=2), torch.empty(0), torch.empty(0)]


def _per_channel(result: torch.Tensor, call: Call, *, weight: int, bias: int) -> torch.Tensor:
    shape = (1, -1) + (1,) * (result.dim() - 2)
    if call.args[weight] is not None:
        result = result * call.real(weight).reshape(shape)
    if call.args[bias] is not None:
        result = result + call.real(bias).reshape(shape)
    return result


OPS: Final = {
    "aten._native_batch_norm_legit_no_training.default": batch_norm,
    "aten.native_group_norm.default": group_norm,
    "aten.native_layer_norm.default": layer_norm,
    "et_vk.rms_norm.default": rms_norm,
}
