# SPDX-License-Identifier: Apache-2.0
"""Convolutions, also with a clamp fused to them, and 1-D ones.

"stock" computes what the shaders make of groups that they do not follow (`conv2d*.glsl`,
`conv_transpose2d.glsl`, `*_prepack_weights.glsl`), of depthwise kernels at the image's right edge
(`conv2d_dw.glsl`), and of strides and paddings that they do not look at (`conv1d_pw.glsl`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import torch

from etvk_guard.contract.convolutions import Convolution, pair
from etvk_guard.reference import stock

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call

_LARGEST: Final = torch.finfo(torch.float32).max
_TEXEL: Final = 4  # channels


def _bias(call: Call, index: int) -> torch.Tensor | None:
    return None if call.args[index] is None else call.real(index)


def _clamped(result: torch.Tensor, low: Any, high: Any) -> torch.Tensor:
    # The largest float32, printed as a double, may be a little too large for torch.
    low = -math.inf if low is None or low < -_LARGEST else low
    high = math.inf if high is None or high > _LARGEST else high
    return torch.clamp(result, low, high)


def convolution(call: Call) -> torch.Tensor:
    """aten.convolution(x, weight, bias, stride, padding, dilation, transposed, .., groups)."""
    stride, padding, dilation, transposed, output_padding, groups = call.args[3:9]
    weight = call.real(1)
    if call.stock:
        numbers = (tuple(stride), tuple(padding), tuple(dilation), bool(transposed), int(groups))
        kind = Convolution(tuple(weight.shape), *numbers)
        if kind.wrong_groups():
            return _stock_groups(call)
        if kind.cut_kernel():
            return _stock_edge(call)
        if kind.ignored() and call.is_height_packed(0):
            return _stock_row(call)
    return torch.convolution(
        call.real(0),
        weight,
        _bias(call, 2),
        stride,
        padding,
        dilation,
        bool(transposed),
        output_padding,
        int(groups),
    )


def _stock_groups(call: Call) -> torch.Tensor:
    x, weight, bias = call.real(0), call.real(1), _bias(call, 2)
    stride, padding, dilation, transposed, output_padding, groups = call.args[3:9]
    if transposed:
        # One group whose result has the channels of one; the rest of them is bias or nothing.
        made = weight.shape[1]
        rest = (stride, padding, dilation, True, output_padding, 1)
        first = torch.convolution(x, weight, None if bias is None else bias[:made], *rest)
        missing = made * (int(groups) - 1)
        return torch.nn.functional.pad(first, (0, 0, 0, 0, 0, missing))
    if tuple(weight.shape[2:]) == (1, 1):
        # Every result is made of the first channels.
        rows = x[:, : weight.shape[1]]
        return torch.nn.functional.conv2d(rows, weight, bias, stride, padding)
    return _stock_texels(x, weight, bias, (stride, padding, dilation), int(groups))


def _stock_texels(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    rest: tuple[Any, Any, Any],
    groups: int,
) -> torch.Tensor:
    """Texel by texel of the result: which texels of x its group begins at."""
    made, read = weight.shape[:2]
    texels, taken = -(-made // _TEXEL), -(-read // _TEXEL) * _TEXEL
    size = texels // groups
    padded = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, (texels + 1) * taken))
    parts = []
    for texel in range(texels):
        rows = slice(texel * _TEXEL, (texel + 1) * _TEXEL)
        start = 0 if size == 0 else texel // size * taken
        own = None if bias is None else bias[rows]
        part = torch.nn.functional.conv2d(padded[:, start : start + read], weight[rows], own, *rest)
        # With fewer texels than groups the shader divides by zero: anything may come of it.
        parts.append(part if size else torch.full_like(part, stock.POISON))
    return torch.cat(parts, 1)


def _stock_edge(call: Call) -> torch.Tensor:
    """A column whose kernel is cut off after some numbers of a row takes the next row from there.

    Columns that are cut off at one place are a convolution of a narrower kernel.
    """
    x, weight, bias = call.real(0), call.real(1), _bias(call, 2)
    (down, right), (above, left) = pair(call.args[3]), pair(call.args[4])
    dilation = pair(call.args[5])
    high, wide = weight.shape[2:]
    full = torch.nn.functional.conv2d(
        x, weight, bias, (down, right), (above, left), dilation, x.shape[1]
    )
    numbers = weight.flatten(2)
    for column in range(full.shape[-1]):
        rest = x.shape[-1] + left - column * right  # from the kernel's left to the image's right
        taken = max(min(-(-rest // dilation[1]), wide), 0)
        if taken == wide:
            continue
        full[..., column] = 0.0 if bias is None else bias[:, None]
        if taken == 0:
            continue
        narrow = numbers[..., : high * taken].reshape(-1, 1, high, taken)
        first = column * right
        part = torch.nn.functional.pad(x, (left, 0))[..., first : first + rest]
        made = torch.nn.functional.conv2d(
            part[..., : (taken - 1) * dilation[1] + 1],
            narrow,
            bias,
            (down, 1),
            (above, 0),
            dilation,
            x.shape[1],
        )
        full[..., column] = made[..., 0]
    return full


def _stock_row(call: Call) -> torch.Tensor:
    """One number times each element, whatever stride and padding; the rest is not written."""
    made = torch.nn.functional.conv1d(call.real(0), call.real(1), _bias(call, 2))
    length = call.out_tensor().dims[-1]
    missing = max(length - made.shape[-1], 0)
    return torch.nn.functional.pad(made, (0, missing), value=stock.POISON)[..., :length]


def conv_with_clamp(call: Call) -> torch.Tensor:
    """conv_with_clamp(x, weight, bias, stride, padding, dilation, transposed, .., low, high)."""
    return _clamped(convolution(call), call.args[9], call.args[10])


def conv1d(call: Call) -> torch.Tensor:
    """et_vk.conv1d_{pw,dw}(x, weight, bias, stride, padding, dilation, groups, low, high)."""
    stride, padding, dilation, groups = call.args[3:7]
    result = torch.nn.functional.conv1d(
        call.real(0), call.real(1), _bias(call, 2), stride, padding, dilation, int(groups)
    )
    return _clamped(result, call.args[7], call.args[8])


def conv2d(call: Call) -> torch.Tensor:
    """et_vk.conv2d_gemm: the arguments of aten.convolution, never transposed."""
    stride, padding, dilation = call.args[3:6]
    return torch.nn.functional.conv2d(
        call.real(0), call.real(1), _bias(call, 2), stride, padding, dilation, int(call.number(8))
    )


OPS: Final = {
    "aten.convolution.default": convolution,
    "conv_with_clamp.default": conv_with_clamp,
    "et_vk.conv1d_dw.default": conv1d,
    "et_vk.conv1d_pw.default": conv1d,
    "et_vk.conv2d_gemm.default": conv2d,
    "et_vk.conv_with_clamp.default": conv_with_clamp,
}
