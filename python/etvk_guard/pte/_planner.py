# SPDX-License-Identifier: Apache-2.0
"""The planner: the legal form of a norm, and why.

The same pure function decides for file repair, for the patched op builder and for the lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etvk_guard import _native

__all__ = ["NormPlan", "OperandSteps", "TensorDesc", "plan_norm"]

Kind = Literal["none", "constant", "runtime", "mutable", "scalar"]
Target = Literal["lowering", "file", "builder"]

UNSET_DTYPE = 127
DEFAULT = 255  # storage and layout


@dataclass(frozen=True)
class TensorDesc:
    """What the planner is told of an operand.

    Attributes:
        kind: "none" (absent), "constant", "runtime", "mutable" (a buffer that the program
            writes) or "scalar" (a number).
        dims: sizes, outermost first.
        dtype: VkDataType; 127 unset.
        storage: VkStorageType; 255 default.
        layout: VkMemoryLayout; 255 default.
    """

    kind: Kind = "none"
    dims: Sequence[int] = ()
    dtype: int = UNSET_DTYPE
    storage: int = DEFAULT
    layout: int = DEFAULT


@dataclass(frozen=True)
class OperandSteps:
    """What has to be done to the multiplier or the addend before the op after the norm.

    Attributes:
        prepack: a constant: `et_vk.prepack` first.
        cast: to `dtype`.
        relayout: a clone to `storage` and `layout`.
        dtype: VkDataType.
        storage: VkStorageType.
        layout: VkMemoryLayout.
    """

    prepack: bool
    cast: bool
    relayout: bool
    dtype: int
    storage: int
    layout: int


@dataclass(frozen=True)
class NormPlan:
    """The legal form of a norm.

    Attributes:
        form: "stock" (legal as it is), "unit" (unit weight, nothing after the norm),
            "unit-then-ops" (unit weight, then multiply and/or add), "fused-row", "fused-batch",
            "fused-full" (our kernels) or "refused".
        reason: why, such as "weight-runtime".
        message: the reason in words, with the shapes.
        unit_weight: the norm gets a weight of ones, of `norm_dtype`.
        zero_bias: the norm gets a bias of zeros.
        norm_dtype: VkDataType of the norm's own result.
        norm_dims: its sizes.
        cast_norm: the norm's result is cast before the ops after it.
        multiply: what is done to the multiplier; None: there is no multiply.
        add: what is done to the addend; None: there is no add.
        rows_per_weight: consecutive rows that share a weight row, for "fused-batch".
    """

    form: str
    reason: str
    message: str
    unit_weight: bool
    zero_bias: bool
    norm_dtype: int
    norm_dims: tuple[int, ...]
    cast_norm: bool
    multiply: OperandSteps | None
    add: OperandSteps | None
    rows_per_weight: int = 0


def plan_norm(
    kind: Literal["rms", "layer"],
    x: TensorDesc,
    weight: TensorDesc,
    out: TensorDesc,
    bias: TensorDesc | None = None,
    *,
    normalized_dims: int = 1,
    target: Target = "lowering",
) -> NormPlan:
    """The legal form of `out = norm(x) * weight (+ bias)`.

    Args:
        kind: an RMS norm, which has no bias, or a layer norm.
        x: the norm's input.
        weight: the multiplier.
        out: the tensor that the site must produce.
        bias: the addend.
        normalized_dims: length of a layer norm's normalized shape.
        target: who will carry the plan out: they differ in what they can do.
    """
    rows = (_row(x), _row(weight), _row(bias or TensorDesc()), _row(out))
    made = _native.plan_norm(kind, *rows, normalized_dims, target)
    form, reason, message, unit, zero, dtype, dims, cast, multiply, add, share = made
    return NormPlan(
        form,
        reason,
        message,
        unit,
        zero,
        dtype,
        tuple(dims),
        cast,
        None if multiply is None else OperandSteps(*multiply),
        None if add is None else OperandSteps(*add),
        share,
    )


def _row(desc: TensorDesc) -> tuple[str, int, int, int, list[int]]:
    return desc.kind, desc.dtype, desc.storage, desc.layout, list(desc.dims)
