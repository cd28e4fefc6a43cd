# SPDX-License-Identifier: Apache-2.0
"""CPU operators that ATen does not have: ExecuTorch's primitives, dim orders, quantization."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

Prim = Callable[[Sequence[Any], Any], Any]


def _number(function: Callable[..., Any]) -> Prim:
    return lambda args, dtype: function(*args)


def _copied(args: Sequence[Any], dtype: Any) -> torch.Tensor:
    """A tensor, as the output's dtype; the dim order is that of the plan's value, not seen here."""
    return args[0].to(dtype, copy=True)  # type: ignore[no-any-return]


def _empty(args: Sequence[Any], dtype: Any) -> torch.Tensor:
    return torch.zeros(args[0], dtype=dtype)


def _view(args: Sequence[Any], dtype: Any) -> torch.Tensor:
    """The same memory in another shape."""
    return args[0].view(args[1])  # type: ignore[no-any-return]


def _symbolic_size(args: Sequence[Any], dtype: Any) -> int:
    return int(args[0].shape[int(args[1])])


def _scalar(args: Sequence[Any], dtype: Any) -> Any:
    return args[0].reshape(()).item()


def _quantize(args: Sequence[Any], dtype: Any) -> torch.Tensor:
    x, scale, zero, low, high = args[:5]
    whole = torch.round(x.float() / _plain(scale)) + _plain(zero)
    return torch.clamp(whole, low, high).to(dtype)


def _dequantize(args: Sequence[Any], dtype: Any) -> torch.Tensor:
    x, scale, zero = args[:3]
    result: torch.Tensor = (x.float() - _plain(zero)) * _plain(scale)
    return result.to(dtype)


def _plain(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) else value


def _per_channel(args: Sequence[Any]) -> list[Any]:
    """(x, scales, zeros, axis, low, high, ..) as per-tensor arguments that broadcast."""
    x, scales, zeros, axis, low, high = args[:6]
    shape = [1] * x.dim()
    shape[axis] = -1
    zeros = torch.zeros_like(scales) if zeros is None else zeros
    return [x, scales.reshape(shape), zeros.reshape(shape), low, high]


# Name to (number of inputs, function of the inputs and the output's dtype).
PRIMS: Final[dict[str, tuple[int, Prim]]] = {
    "aten::_local_scalar_dense": (1, _scalar),
    "aten::sym_numel": (1, lambda args, dtype: args[0].numel()),
    "aten::sym_size.int": (2, _symbolic_size),
    "dim_order_ops::_clone_dim_order.out": (3, _copied),
    "dim_order_ops::_empty_dim_order.out": (2, _empty),
    "dim_order_ops::_to_dim_order_copy.out": (3, _copied),
    "executorch_prim::add.Scalar": (2, _number(operator.add)),
    "executorch_prim::ceil.Scalar": (1, _number(math.ceil)),
    "executorch_prim::eq.Scalar": (2, _number(operator.eq)),
    "executorch_prim::et_view.default": (2, _view),
    "executorch_prim::floordiv.Scalar": (2, _number(operator.floordiv)),
    "executorch_prim::floordiv.int": (2, _number(operator.floordiv)),
    "executorch_prim::ge.Scalar": (2, _number(operator.ge)),
    "executorch_prim::gt.Scalar": (2, _number(operator.gt)),
    "executorch_prim::le.Scalar": (2, _number(operator.le)),
    "executorch_prim::lt.Scalar": (2, _number(operator.lt)),
    "executorch_prim::mod.Scalar": (2, _number(operator.mod)),
    "executorch_prim::mod.int": (2, _number(operator.mod)),
    "executorch_prim::mul.Scalar": (2, _number(operator.mul)),
    "executorch_prim::neg.Scalar": (1, _number(operator.neg)),
    "executorch_prim::round.Scalar": (1, _number(round)),
    "executorch_prim::sub.Scalar": (2, _number(operator.sub)),
    "executorch_prim::sym_float.Scalar": (1, _number(float)),
    "executorch_prim::sym_int.Scalar": (1, _number(int)),
    "executorch_prim::sym_ite.Scalar": (3, _number(lambda c, a, b: a if c else b)),
    "executorch_prim::sym_max.Scalar": (2, _number(max)),
    "executorch_prim::sym_min.Scalar": (2, _number(min)),
    "executorch_prim::sym_not.Scalar": (1, _number(operator.not_)),
    "executorch_prim::truediv.Scalar": (2, _number(operator.truediv)),
    "executorch_prim::trunc.Scalar": (1, _number(math.trunc)),
    "quantized_decomposed::dequantize_per_channel.out": (
        8,
        lambda args, dtype: _dequantize(_per_channel(args), dtype),
    ),
    "quantized_decomposed::dequantize_per_tensor.Tensor_out": (7, _dequantize),
    "quantized_decomposed::dequantize_per_tensor.out": (7, _dequantize),
    "quantized_decomposed::dequantize_per_token.out": (7, _dequantize),
    "quantized_decomposed::quantize_per_channel.out": (
        7,
        lambda args, dtype: _quantize(_per_channel(args), dtype),
    ),
    "quantized_decomposed::quantize_per_tensor.Tensor_out": (6, _quantize),
    "quantized_decomposed::quantize_per_tensor.out": (6, _quantize),
    "quantized_decomposed::quantize_per_token.out": (6, _quantize),
}
