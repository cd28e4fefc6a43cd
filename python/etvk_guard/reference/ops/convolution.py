# SPDX-License-Identifier: Apache-2.0
"""Convolutions with a clamp fused to them, and pointwise and depthwise 1-D ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call


def _bias(call: Call, index: int) -> torch.Tensor | None:
    return None if call.args[index] is None else call.real(index)


def _clamped(result: torch.Tensor, low: Any, high: Any) -> torch.Tensor:
    return result if low is None and high is None else torch.clamp(result, low, high)


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


OPS: Final = {
    "conv_with_clamp.default": conv_with_clamp,
    "et_vk.conv_with_clamp.default": conv_with_clamp,
}
