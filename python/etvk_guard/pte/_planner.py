# SPDX-License-Identifier: Apache-2.0
"""The planner: the legal form of a norm, and why.

The same pure function decides for file repair, for the patched op builder and for the lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
        rows: which of the operand's rows (the values along the last dim) belong to which of x's:
            "one" row for all, "batch" (one for each group of consecutive rows), "full" (one for
            each row) or "other".
        shared_rows: of "batch": rows of x that share one row of the operand; else 0.
        view: of a norm over channels: the sizes that it is viewed as, [1, C, 1, 1]; else empty.
    """

    prepack: bool
    cast: bool
    relayout: bool
    dtype: int
    storage: int
    layout: int
    rows: Literal["one", "batch", "full", "other"]
    shared_rows: int
    view: tuple[int, ...]


@dataclass(frozen=True)
class NormPlan:
    """The legal form of a norm.

    Attributes:
        form: "stock" (legal as it is), "unit" (unit weight, nothing after the norm),
            "unit-then-ops" (unit weight, then multiply and/or add), "fused-row", "fused-batch",
            "fused-full" (our kernels) or "refused". What is done to x and to the result of a norm
            over channels also makes it "unit-then-ops".
        reason: why it is not "stock", or why it is "refused", such as "weight-runtime".
        problem: what stock cannot run, also where the form is "refused"; "legal" if nothing.
        message: the reason in words, with the shapes.
        unit_weight: the norm gets a weight of ones, of `norm_dtype`.
        zero_bias: the norm gets a bias of zeros.
        norm_dtype: VkDataType of the norm's own result.
        norm_dims: its sizes.
        cast_norm: the norm's result is cast before the ops after it.
        multiply: what is done to the multiplier; None: there is no multiply.
        add: what is done to the addend; None: there is no add.
        multiply_dims: sizes of the product, before the addition.
        added_dims: of a norm over channels: so many dims of size 1 are put after x's, and taken
            from the result.
        computed: of a batch norm with run-time statistics: no norm is left, but its plain ops.
        relayout_x: of a norm over channels, for the builder: x is first cloned to a
            channels-packed texture.
        relayout_out: likewise, the result is cloned from one.
    """

    form: str
    reason: str
    problem: str
    message: str
    unit_weight: bool
    zero_bias: bool
    norm_dtype: int
    norm_dims: tuple[int, ...]
    cast_norm: bool
    multiply: OperandSteps | None
    add: OperandSteps | None
    multiply_dims: tuple[int, ...]
    added_dims: int
    computed: bool
    relayout_x: bool
    relayout_out: bool


def plan_norm(
    kind: Literal["rms", "layer", "group", "batch"],
    x: TensorDesc,
    weight: TensorDesc,
    out: TensorDesc,
    bias: TensorDesc | None = None,
    *,
    normalized_dims: int = 1,
    mean: TensorDesc | None = None,
    variance: TensorDesc | None = None,
    target: Target = "lowering",
) -> NormPlan:
    """The legal form of `out = norm(x) * weight (+ bias)`.

    Args:
        kind: an RMS norm, which has no bias, a layer, group or batch norm.
        x: the norm's input.
        weight: the multiplier.
        out: the tensor that the site must produce.
        bias: the addend.
        normalized_dims: length of a layer norm's normalized shape.
        mean: the mean that a batch norm is given.
        variance: the variance that a batch norm is given.
        target: who will carry the plan out: they differ in what they can do.
    """
    rows = (_row(x), _row(weight), _row(bias or TensorDesc()), _row(out))
    given = (_row(mean or TensorDesc()), _row(variance or TensorDesc()))
    made = _native.plan_norm(kind, *rows, normalized_dims, *given, target)
    form, reason, problem, message, unit, zero, dtype, dims, cast = made[:9]
    multiply, add, product, added, computed, relayout_x, relayout_out = made[9:]
    return NormPlan(
        form,
        reason,
        problem,
        message,
        unit_weight=unit,
        zero_bias=zero,
        norm_dtype=dtype,
        norm_dims=tuple(dims),
        cast_norm=cast,
        multiply=_steps(multiply),
        add=_steps(add),
        multiply_dims=tuple(product),
        added_dims=added,
        computed=computed,
        relayout_x=relayout_x,
        relayout_out=relayout_out,
    )


def _steps(row: tuple[Any, ...] | None) -> OperandSteps | None:
    return None if row is None else OperandSteps(*(*row[:8], tuple(row[8])))


def _row(desc: TensorDesc) -> tuple[str, int, int, int, list[int]]:
    return desc.kind, desc.dtype, desc.storage, desc.layout, list(desc.dims)
