# SPDX-License-Identifier: Apache-2.0
"""Convolutions of ET-VK's own: with a clamp fused to them, and 1-D ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call

_LARGEST: Final = torch.finfo(torch.float32).max


def _bias(call: Call, index: int) -> torch.Tensor | None:
    return None if call.args[index] is None else call.real(index)


def _clamped(result: torch.Tensor, low: Any, high: Any) -> torch.Tensor:
    # The largest float32, printed as a double, may be a little too large for torch.
    low = -math.inf if low is None or low < -_LARGEST else low
    high = math.inf if high is None or high > _LARGEST else high
    return torch.clamp(result, low, high)


def conv_with_clamp(call: Call) -> torch.Tensor:
    """conv_with_clamp(x, weight, bias, stride, padding, dilation, transposed, .., low, high)."""
    stride, padding, dilation, transposed, output_padding, groups = call.args[3:9]
    result = torch.convolution(
        call.real(0),
        call.real(1),
        _bias(call, 2),
        stride,
        padding,
        dilation,
        bool(transposed),
        output_padding,
        int(groups),
    )
    return _clamped(result, call.args[9], call.args[10])


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
    "conv_with_clamp.default": conv_with_clamp,
    "et_vk.conv1d_dw.default": conv1d,
    "et_vk.conv1d_pw.default": conv1d,
    "et_vk.conv2d_gemm.default": conv2d,
    "et_vk.conv_with_clamp.default": conv_with_clamp,
}
