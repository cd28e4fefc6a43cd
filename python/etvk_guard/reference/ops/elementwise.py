# SPDX-License-Identifier: Apache-2.0
"""Element-wise ops in which stock's shaders differ from the ATen operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from etvk_guard.reference import stock
from etvk_guard.reference.ops.generic import aten

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call


def gelu(call: Call) -> torch.Tensor:
    """`approximate` is ignored by stock: `unary_op.yaml` has the tanh form only."""
    approximate = "tanh" if call.stock else str(call.args[1] or "none")
    return torch.nn.functional.gelu(call.real(0), approximate=approximate)


def power(call: Call) -> torch.Tensor:
    """pow; stock's `power_of` (binary_op_defs.glslh) differs for a base that is not positive."""
    base, exponent = _widened(call.tensor(0)), _widened(call.args[1])
    return _stock_power(base, exponent) if call.stock else torch.pow(base, exponent)


def _stock_power(base: torch.Tensor, exponent: torch.Tensor | float) -> torch.Tensor:
    """0 to any power but 0 is 0, and |x| ** y keeps its sign for a positive odd y only."""
    y = torch.as_tensor(exponent, dtype=torch.float32)
    x = base.to(torch.float32)
    whole = torch.round(y)
    odd = ((y - whole).abs() < 1e-5) & (torch.fmod(whole, 2) == 1)
    result = torch.pow(x.abs(), y)
    result = torch.where((x < 0) & odd, -result, result)
    return torch.where(x == 0, (y == 0).to(torch.float32), result)


def divide(call: Call) -> torch.Tensor:
    """div with a rounding mode; stock's `floor_divide` rounds down, whatever the mode."""
    mode = "floor" if call.stock else call.args[2]
    left, right = (_widened(call.args[place]) for place in (0, 1))
    return torch.div(left, right, rounding_mode=mode)


def _widened(operand: Any) -> Any:
    half = isinstance(operand, torch.Tensor) and operand.dtype == torch.float16
    return operand.float() if half else operand


def gather(call: Call) -> torch.Tensor:
    """gather; stock reads elsewhere where the dim is counted from the end."""
    result = aten("gather.default")(call)
    assert isinstance(result, torch.Tensor)
    if call.stock and call.number(1) < 0 and result.is_floating_point():
        return torch.full_like(result, stock.POISON)
    return result


OPS: Final = {
    "aten.div.Tensor_mode": divide,
    "aten.gather.default": gather,
    "aten.gelu.default": gelu,
    "aten.pow.Tensor_Scalar": power,
    "aten.pow.Tensor_Tensor": power,
}
