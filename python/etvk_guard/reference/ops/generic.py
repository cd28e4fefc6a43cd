# SPDX-License-Identifier: Apache-2.0
"""The ops whose kernels compute what the ATen operator of the same name computes.

Only names of this list are ever looked up: a file cannot name an operator of its choice. Half
operands are computed in float32 and the result is rounded once, which is what ET-VK's texture
shaders do, and its reductions and matrix products in buffers too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from etvk_guard.reference import schema
from etvk_guard.reference.dtypes import nbytes

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call, OpFunction, Result

_NAMES: Final = """
_log_softmax.default _softmax.default _weight_int8pack_mm.default abs.default add.Tensor
addmm.default amax.default amin.default arange.start_step argmax.default argmin.default
bitwise_and.Tensor bitwise_not.default bitwise_or.Tensor bmm.default cat.default clamp.default
constant_pad_nd.default cos.default div.Tensor
eq.Scalar eq.Tensor exp.default expand_copy.default flip.default full.default
full_like.default ge.Scalar ge.Tensor grid_sampler_2d.default gt.Scalar gt.Tensor
hardshrink.default hardsigmoid.default hardswish.default hardtanh.default index.Tensor
index_select.default le.Scalar le.Tensor leaky_relu.default linear.default log10.default
logical_and.default logical_not.default logical_or.default lt.Scalar lt.Tensor mean.dim
minimum.default mm.default mul.Tensor ne.Scalar neg.default ones.default ones_like.default
permute.default permute_copy.default pixel_shuffle.default relu.default relu6.default
repeat.default repeat_interleave.self_int round.default rsqrt.default scalar_tensor.default
select.int select_copy.int sigmoid.default sin.default slice.Tensor slice_copy.Tensor
split_with_sizes_copy.default sqrt.default squeeze_copy.dims sub.Tensor sum.dim_IntList
t_copy.default tan.default tanh.default unfold_copy.default unsqueeze_copy.default
upsample_bilinear2d.vec var.dim view_copy.default where.self zeros.default
zeros_like.default
"""

# Operators that want 64-bit indices, where ET-VK has 32-bit ones.
_LONG_INDICES: Final = frozenset({"gather.default"})

# Ops whose result can be far larger than their operands: its size is found before it is computed.
_GROWING_NAMES: Final = """
arange.start_step cat.default constant_pad_nd.default full.default
index_select.default ones.default repeat.default repeat_interleave.self_int unfold_copy.default
upsample_bilinear2d.vec upsample_nearest2d.vec zeros.default
"""
_GROWING: Final = frozenset(_GROWING_NAMES.split())


def _overload(name: str) -> torch._ops.OpOverload:
    base, overload = name.split(".")
    found: torch._ops.OpOverload = getattr(getattr(torch.ops.aten, base), overload)
    return found


def _widened(value: Any, name: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_widened(item, name) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.float16:
        return value.float()
    if name in _LONG_INDICES and value.dtype == torch.int32:
        return value.long()
    return value


def _check_size(overload: torch._ops.OpOverload, args: Any, kwargs: Any, call: Call) -> None:
    """ValueError if the result would be larger than what its VkTensor declares."""
    meta = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))
    result = overload(*meta[0], **meta[1], **({} if _has_tensor(args) else {"device": "meta"}))
    declared = call.out_tensor()
    room = nbytes(torch.uint8, tuple(declared.dims))
    if result.numel() > room:
        raise ValueError(f"the result has {result.numel()} elements, {room} are declared")


def _has_tensor(args: Any) -> bool:
    leaves = torch.utils._pytree.tree_leaves(args)
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves)


def aten(name: str) -> OpFunction:
    """The ATen operator of this name ("add.Tensor") as an op's function."""
    overload = _overload(name)

    def run(call: Call) -> Result:
        values = [_widened(value, name) for value in call.args]
        args, kwargs = schema.bind(overload._schema, values, loose_formats=True)
        if name in _GROWING:
            _check_size(overload, args, kwargs, call)
        result: Result = overload(*args, **kwargs)
        return result

    return run


OPS: Final = {f"aten.{name}": aten(name) for name in _NAMES.split()}
