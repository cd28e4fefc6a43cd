# SPDX-License-Identifier: Apache-2.0
"""Small models around the ops other than norms over rows that ET-VK prepacks operands of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from model import ADD, CLONE, LINEAR, MUL, PREPACK, SIN, SUB, Inputs, Model
from norms import rand
from op_modules import (
    CHANNELS,
    BatchNorm,
    BatchNormStatistics,
    Calls,
    Convolution,
    Embedding,
    EmbeddingComputed,
    GroupedConvolution,
    GroupNorm,
    GroupNormWeight,
    LeftFactor,
    Linear,
    LinearBias,
    Pad,
    Table,
)

VIEW, ABS = "aten.view_copy.default", "aten.abs.default"
RSQRT = "aten.rsqrt.default"
LIFT, DROP = "aten.unsqueeze_copy.default", "aten.squeeze_copy.dims"
MM, ADDMM, PERMUTE = "aten.mm.default", "aten.addmm.default", "aten.permute_copy.default"
EMBEDDING, SELECT = "aten.embedding.default", "aten.index_select.default"
GROUP = "aten.native_group_norm.default"
BATCH = "aten._native_batch_norm_legit_no_training.default"
CONVOLUTION, PAD = "aten.convolution.default", "aten.constant_pad_nd.default"

HALF = torch.float16
IMAGE = (2, CHANNELS, 5, 7)
COLUMN = (CHANNELS,)
BUFFERS = {"texture_limits": (1, 1, 1)}
HEIGHT = torch.export.Dim("height", max=32)
ROWS = torch.export.Dim("rows", max=32)


def _inputs(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], Inputs]:
    return lambda: tuple(rand(*shape, dtype=dtype, seed=7 + i) for i, shape in enumerate(shapes))


def _indices(*shape: int, rows: int) -> Tensor:
    return torch.arange(torch.Size(shape).numel()).reshape(shape) * 7 % rows


def _table(*indices: int) -> Callable[[], Inputs]:
    """A table of twelve rows, and indices of this shape."""
    return lambda: (rand(12, 10), _indices(*indices, rows=12))


def _abort(
    make: Callable[[], nn.Module],
    inputs: Callable[[], Inputs],
    codes: str,
    ops: tuple[str, ...],
    repaired: tuple[str, ...] | None,
    **more: Any,
) -> Model:
    """A model that stock aborts on."""
    after = None if repaired is None else (repaired,)
    return Model(make, inputs, "abort", tuple(codes.split()), (ops,), after, **more)


AFFINE = (VIEW, MUL, VIEW, ADD)
RUNTIME = _inputs(IMAGE, COLUMN, COLUMN)
HALVES = _inputs(IMAGE, COLUMN, COLUMN, dtype=HALF)

_CHANNEL_NORMS = {
    "group_norm": Model(lambda: GroupNorm(True, True), _inputs(IMAGE), ops=((GROUP,),)),
    "group_norm_bare": _abort(GroupNorm, _inputs(IMAGE), "EG202 EG202", (GROUP,), (GROUP,)),
    "group_norm_runtime": _abort(GroupNorm, RUNTIME, "EG201 EG201", (GROUP,), (GROUP, *AFFINE)),
    "group_norm_half": _abort(
        GroupNorm, HALVES, "EG201 EG201", (GROUP,), (GROUP, *AFFINE), tolerance=2e-3
    ),
    "group_norm_runtime_weight": _abort(
        GroupNormWeight, _inputs(IMAGE, COLUMN), "EG201", (GROUP,), (PREPACK, GROUP, *AFFINE)
    ),
    "group_norm_runtime_weight_only": _abort(
        lambda: GroupNormWeight(bias=False),
        _inputs(IMAGE, COLUMN),
        "EG201 EG202",
        (GROUP,),
        (GROUP, VIEW, MUL),
    ),
    "group_norm_runtime_bias": _abort(
        lambda: GroupNorm(weight=True),
        _inputs(IMAGE, COLUMN),
        "EG201",
        (GROUP,),
        (GROUP, VIEW, ADD),
    ),
    "group_norm_of_three_dims": Model(
        lambda: GroupNorm(True, True),
        _inputs((2, CHANNELS, 5)),
        "wrong",
        ("EG111",),
        ((GROUP,),),
        ((LIFT, GROUP, DROP),),
    ),
    "batch_norm": Model(lambda: BatchNorm(True), _inputs(IMAGE), ops=((BATCH,),)),
    "batch_norm_bare": _abort(BatchNorm, _inputs(IMAGE), "EG202 EG202", (BATCH,), (BATCH,)),
    "batch_norm_runtime": _abort(BatchNorm, RUNTIME, "EG201 EG201", (BATCH,), (BATCH, *AFFINE)),
    "batch_norm_dynamic": _abort(
        BatchNorm,
        RUNTIME,
        "EG201 EG201",
        (BATCH,),
        (BATCH, *AFFINE),
        options={"require_dynamic_shapes": True},
        dynamic={"x": {2: HEIGHT}, "weight": None, "bias": None},
    ),
    "batch_norm_of_three_dims": _abort(
        lambda: BatchNorm(True),
        _inputs((2, CHANNELS, 5)),
        "EG109",
        (BATCH,),
        (LIFT, BATCH, DROP),
    ),
    "batch_norm_of_two_dims": _abort(
        lambda: BatchNorm(), _inputs((2, CHANNELS)), "EG202 EG202 EG109", (BATCH,),
        (LIFT, LIFT, BATCH, DROP),
    ),
    "batch_norm_runtime_of_three_dims": _abort(
        BatchNorm,
        _inputs((2, CHANNELS, 5), COLUMN, COLUMN),
        "EG201 EG201 EG109",
        (BATCH,),
        (LIFT, BATCH, *AFFINE, DROP),
    ),
    "batch_norm_statistics": _abort(
        BatchNormStatistics,
        RUNTIME,
        "EG201 EG201",
        (PREPACK, ABS, ADD, BATCH),
        (PREPACK, ABS, ADD, PREPACK, PREPACK, VIEW, SUB, VIEW, ADD, RSQRT, MUL, *AFFINE),
        cpu=1,
    ),
    "batch_norm_statistics_of_three_dims": _abort(
        BatchNormStatistics,
        _inputs((2, CHANNELS, 5), COLUMN, COLUMN),
        "EG201 EG201 EG109",
        (PREPACK, ABS, ADD, BATCH),
        (PREPACK, ABS, ADD, PREPACK, PREPACK, VIEW, SUB, VIEW, ADD, RSQRT, MUL, *AFFINE),
        cpu=1,
    ),
}  # fmt: skip

_PRODUCTS = {
    "linear_runtime": _abort(
        Linear, _inputs((5, 8), (6, 8)), "EG201", (LINEAR,), (PERMUTE, MM)
    ),
    "linear_runtime_bias": _abort(
        Linear, _inputs((5, 8), (6, 8), (6,)), "EG201 EG201", (LINEAR,), (PERMUTE, MM, ADD)
    ),
    "linear_runtime_odd": _abort(
        Linear, _inputs((5, 7), (3, 7), (3,)), "EG201 EG201", (LINEAR,), (PERMUTE, MM, ADD)
    ),
    "linear_runtime_constant_bias": _abort(
        lambda: Linear(6),
        _inputs((5, 8), (6, 8)),
        "EG201",
        (LINEAR,),
        (PERMUTE, MM, PREPACK, ADD),
    ),
    "linear_bias": _abort(
        lambda: LinearBias(6, 8), _inputs((5, 8), (6,)), "EG201", (LINEAR,), (LINEAR, ADD)
    ),
    "linear_runtime_rank_3": _abort(
        Linear,
        _inputs((2, 5, 8), (6, 8), (6,)),
        "EG201 EG201",
        (VIEW, LINEAR, VIEW),
        (VIEW, PERMUTE, MM, ADD, VIEW),
    ),
    "linear_runtime_half": _abort(
        Linear,
        _inputs((5, 8), (6, 8), (6,), dtype=HALF),
        "EG201 EG201",
        (LINEAR,),
        (PERMUTE, MM, ADD),
        tolerance=2e-3,
    ),
    "linear_runtime_in_buffers": _abort(
        Linear,
        _inputs((5, 8), (6, 8), (6,)),
        "EG201 EG201",
        (LINEAR,),
        (PERMUTE, MM, ADD),
        options=BUFFERS,
    ),
    "linear_runtime_dynamic": _abort(
        Linear,
        _inputs((5, 8), (6, 8), (6,)),
        "EG201 EG201",
        (LINEAR,),
        (PERMUTE, MM, ADD),
        options={"require_dynamic_shapes": True},
        dynamic={"x": {0: ROWS}, "weight": None, "bias": None},
    ),
    "left_factor": _abort(
        lambda: LeftFactor(6, 8),
        _inputs((8, 5), (5,)),
        "EG204",
        (ADDMM,),
        (PREPACK, ADDMM),
        cpu=1,
    ),
}  # fmt: skip

_TABLES = {
    "embedding": Model(
        lambda: Table(20, 10),
        lambda: (_indices(2, 5, rows=20),),
        ops=((PREPACK, EMBEDDING, MUL),),
    ),
    "embedding_of_many_rows": Model(
        lambda: Table(20000, 8),
        lambda: (_indices(2, 5, rows=20000),),
        "wrong",
        ("EG208",),
        ((PREPACK, EMBEDDING, MUL),),
        ((PREPACK, EMBEDDING, CLONE, MUL),),
    ),
    "embedding_runtime": _abort(
        Embedding, _table(5), "EG201", (EMBEDDING,), (CLONE, CLONE, SELECT, CLONE)
    ),
    "embedding_computed": _abort(
        EmbeddingComputed,
        _table(2, 5),
        "EG201",
        (PREPACK, SIN, EMBEDDING, MUL),
        (PREPACK, SIN, CLONE, CLONE, VIEW, SELECT, VIEW, MUL),
    ),
    "embedding_half": _abort(
        Embedding,
        lambda: (rand(12, 10, dtype=HALF), _indices(2, 5, rows=12)),
        "EG201",
        (EMBEDDING,),
        (CLONE, CLONE, VIEW, SELECT, VIEW),
        tolerance=2e-3,
    ),
    "embedding_in_buffers": _abort(
        Embedding,
        _table(2, 5),
        "EG201",
        (EMBEDDING,),
        (CLONE, CLONE, VIEW, SELECT, VIEW, CLONE),
        options=BUFFERS,
        cpu=1,
    ),
    "embedding_dynamic": _abort(
        Embedding,
        _table(5),
        "EG201",
        (EMBEDDING,),
        None,
        options={"require_dynamic_shapes": True},
        dynamic={"table": None, "indices": {0: ROWS}},
        cpu=1,
    ),
}

_CONVOLUTIONS = {
    "convolution_runtime": _abort(
        Convolution,
        _inputs((1, 4, 6, 6), (8, 4, 3, 3)),
        "EG201",
        (CONVOLUTION,),
        None,
        cpu=1,
    ),
    "groups_of_fours": Model(
        lambda: GroupedConvolution((8, 4, 3, 3), 2, 8), _inputs((1, 8, 6, 6)), ops=((CONVOLUTION,),)
    ),
}


def _groups(*weight: int, groups: int, channels: int, **more: Any) -> Model:
    """A convolution in groups that stock gets wrong."""
    return Model(
        lambda: GroupedConvolution(weight, groups, **more),
        _inputs((1, channels, 6, 6)),
        "wrong",
        ("EG207",),
        ((CONVOLUTION,),),
        cpu=1,
    )


_GROUPS = {
    "groups_in": _groups(8, 2, 3, 3, groups=2, channels=4, bias=8),
    "groups_out": _groups(6, 4, 3, 3, groups=2, channels=8, bias=6),
    "groups_few": _groups(4, 2, 3, 3, groups=2, channels=4),
    "groups_point": _groups(8, 4, 1, 1, groups=2, channels=8, bias=8),
    "groups_transposed": _groups(8, 4, 3, 3, groups=2, channels=8, bias=8, transposed=True),
}

_REDUCTIONS = {
    "mean_of_channels": _abort(
        lambda: Calls(lambda x: (x * 2.0).mean(1, keepdim=True) + x),
        _inputs((2, 6, 5, 8)),
        "EG209",
        (PREPACK, MUL, "aten.mean.dim", ADD),
        None,
        cpu=1,
    ),
    "softmax_of_channels": _abort(
        lambda: Calls(lambda x: torch.softmax(x * 2.0, 1)),
        _inputs((2, 6, 5, 8)),
        "EG209",
        (PREPACK, MUL, "aten._softmax.default"),
        None,
        cpu=1,
    ),
    "softmax_of_one_batch": Model(
        lambda: Calls(lambda x: torch.softmax(x * 2.0, 1)),
        _inputs((1, 6, 5, 8)),
        ops=((PREPACK, MUL, "aten._softmax.default"),),
    ),
}

_LISTS = {
    "pad_dynamic": _abort(
        Pad,
        _inputs((2, 5, 8)),
        "EG206",
        (PREPACK, "sym_size.int", PAD, MUL),
        None,
        options={"require_dynamic_shapes": True},
        dynamic={"x": {1: HEIGHT}},
        cpu=2,
    ),
}

OP_MODELS: Mapping[str, Model] = {
    **_CHANNEL_NORMS,
    **_PRODUCTS,
    **_TABLES,
    **_CONVOLUTIONS,
    **_GROUPS,
    **_REDUCTIONS,
    **_LISTS,
}
