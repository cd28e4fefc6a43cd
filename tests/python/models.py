# SPDX-License-Identifier: Apache-2.0
"""Small models around a norm: a table that the tests, the demo and the benchmarks share.

Each row is a module, its inputs and how it is lowered with the stock `VulkanPartitioner`, and says
what stock does with the result: "right", "abort" (it throws while the method loads) or "wrong"
(silently wrong values). Weights and inputs are seeded: the same row always gives the same file.
The rows of op_models.py and call_models.py, around other ops, are in the table too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from call_models import CALL_MODELS
from model import (
    ADD,
    CAST,
    CLONE,
    LAYER,
    LINEAR,
    MUL,
    PREPACK,
    RMS,
    SIGMOID,
    SIN,
    SUB,
    Model,
)
from norms import (
    CastWeight,
    DiTBlock,
    FloatScale,
    Gated,
    Large,
    LayerNorm,
    LayerNormRuntime,
    LayerNormRuntimeWeight,
    OnePlus,
    Parameter,
    Runtime,
    RuntimeLeft,
    Scalar,
    Scale,
    Shared,
    SharedLeaf,
    Split,
    rand,
)
from op_models import OP_MODELS

X = (2, 8, 64)
HALF = torch.float16
SEQUENCE = torch.export.Dim("sequence", max=32)


def _x(*more: tuple[int, ...], x: tuple[int, ...] = X, dtype: torch.dtype = torch.float32) -> Any:
    """Makes x and further inputs, by their shapes."""
    return lambda: tuple(rand(*shape, dtype=dtype, seed=i) for i, shape in enumerate((x, *more)))


def _runtime(*scale: int, x: tuple[int, ...] = X, **more: Any) -> Model:
    """norm(x) * s."""
    return Model(
        Runtime,
        _x(scale, x=x),
        stock="abort",
        codes=("EG101",),
        ops=((RMS,),),
        repaired=((RMS, MUL),),
        **more,
    )


def _scale(
    *scale: int, x: tuple[int, ...] = X, dtype: torch.dtype = torch.float32, **more: Any
) -> Model:
    """norm(x) * (1 + s)."""
    return Model(
        Scale,
        _x(scale, x=x, dtype=dtype),
        stock="abort",
        codes=("EG101",),
        ops=((PREPACK, CAST, ADD, RMS),),
        repaired=((PREPACK, CAST, ADD, RMS, MUL),),
        **more,
    )


def _constant(make: Callable[[], nn.Module], *more: str) -> Model:
    """norm(x) * a constant of another shape than [D]."""
    return Model(
        make,
        _x(),
        stock="wrong",
        codes=("EG102", *more),
        ops=((RMS,),),
        repaired=((PREPACK, RMS, MUL),),
    )


_MULTIPLIERS = {
    "leaf": Model(lambda: Parameter(64), _x(), ops=((RMS,),)),
    "leaf_11d": Model(lambda: Parameter(1, 1, 64), _x(), ops=((RMS,),)),
    "one_plus": Model(
        lambda: OnePlus(64),
        _x(),
        stock="abort",
        codes=("EG101",),
        ops=((PREPACK, PREPACK, ADD, RMS),),
        repaired=((PREPACK, PREPACK, ADD, RMS, MUL),),
    ),
    "runtime_11d": _runtime(1, 1, 64),
    "runtime_d": _runtime(64),
    "runtime_b1d": _runtime(2, 1, 64),
    "runtime_btd": _runtime(2, 8, 64),
    "runtime_left": replace(_runtime(1, 1, 64), make=RuntimeLeft),
    "scale": _scale(1, 1, 64),
    "gated": Model(
        Gated,
        _x(X),
        stock="abort",
        codes=("EG101",),
        ops=((SIGMOID, MUL, RMS),),
        repaired=((SIGMOID, MUL, RMS, MUL),),
    ),
    "constant_rows": _constant(lambda: Parameter(8, 64)),
    "constant_b1d": _constant(lambda: Parameter(2, 1, 64)),
    "constant_1": _constant(lambda: Parameter(1)),
    "constant_half": _constant(Scalar),
    "constant_up": replace(
        _constant(lambda: Parameter(2, 1, 64), "EG107"), inputs=_x(x=(1, 8, 64))
    ),
    "constant_rank": _constant(lambda: Parameter(2, 1, 1, 64), "EG107"),
}

_SHAPES = {
    "rank_2": _scale(64, x=(8, 64)),
    "rank_4": _scale(1, 1, 1, 64, x=(1, 2, 8, 64)),
    "odd": _scale(1, 1, 63, x=(2, 8, 63)),
    "odd_constant": replace(_constant(lambda: Parameter(8, 63)), inputs=_x(x=(2, 8, 63))),
    "dynamic": _scale(
        2,
        8,
        64,
        options={"require_dynamic_shapes": True},
        dynamic={"x": {1: SEQUENCE}, "s": {1: SEQUENCE}},
    ),
    "dynamic_row": _scale(
        1,
        1,
        64,
        options={"require_dynamic_shapes": True},
        dynamic={"x": {1: SEQUENCE}, "s": None},
    ),
}

_DTYPES = {
    "half_one_plus": Model(
        lambda: OnePlus(64, dtype=HALF),
        _x(dtype=HALF),
        stock="abort",
        codes=("EG101",),
        ops=((PREPACK, PREPACK, CAST, ADD, RMS),),
        repaired=((PREPACK, PREPACK, CAST, ADD, RMS, MUL),),
        tolerance=2e-3,
    ),
    "half_scale": _scale(1, 1, 64, dtype=HALF, tolerance=2e-3),
    "half_constant_rows": replace(
        _constant(lambda: Parameter(8, 64, dtype=HALF)), inputs=_x(dtype=HALF), tolerance=2e-3
    ),
    "half_cast_weight": Model(
        lambda: CastWeight(64),
        _x(dtype=HALF),
        stock="abort",
        codes=("EG101",),
        ops=((PREPACK, CAST, RMS),),
        repaired=((PREPACK, CAST, RMS, MUL),),
        tolerance=2e-3,
    ),
    "force_fp16": replace(
        _scale(1, 1, 64),
        ops=((PREPACK, CAST, CLONE, ADD, RMS),),
        repaired=((PREPACK, CAST, CLONE, ADD, RMS, MUL),),
        options={"force_fp16": True},
        tolerance=2e-3,
    ),
}

_STORAGE = {
    "buffer": _runtime(1, 1, 64, options={"storage_type_override": "BUFFER"}),
    "texture": Model(
        FloatScale,
        _x((1, 1, 64)),
        stock="abort",
        codes=("EG101",),
        ops=((PREPACK, ADD, RMS),),
        repaired=((PREPACK, ADD, RMS, MUL),),
        options={"storage_type_override": "TEXTURE_3D"},
    ),
    "channels_packed": _runtime(
        1, 1, 64, options={"memory_layout_override": "TENSOR_CHANNELS_PACKED"}
    ),
    "buffer_constant": replace(
        _constant(lambda: Parameter(2, 1, 64)), options={"storage_type_override": "BUFFER"}
    ),
}

# No texture is small enough: all goes to buffers. The overrides above only change the default.
_BUFFERS = {"texture_limits": (1, 1, 1)}

_IN_BUFFERS = {
    "in_buffers": _runtime(1, 1, 64, options=_BUFFERS),
    "in_buffers_b1d": _runtime(2, 1, 64, options=_BUFFERS),
    "in_buffers_constant": replace(_constant(lambda: Parameter(2, 1, 64)), options=_BUFFERS),
    "in_buffers_half": replace(_DTYPES["half_one_plus"], options=_BUFFERS),
    "in_buffers_odd": replace(_SHAPES["odd"], options=_BUFFERS),
}

_PROGRAMS = {
    "shared": Model(
        lambda: Shared(64),
        _x(),
        stock="abort",
        codes=("EG101", "EG101"),
        ops=((PREPACK, PREPACK, ADD, RMS, SIN, RMS),),
        repaired=((PREPACK, PREPACK, ADD, RMS, MUL, SIN, RMS, MUL),),
    ),
    "shared_leaf": Model(lambda: SharedLeaf(64), _x(), ops=((RMS, SIN, RMS),)),
    "split": Model(
        Split,
        _x((1, 1, 64)),
        stock="abort",
        codes=("EG101", "EG101"),
        ops=((PREPACK, CAST, ADD, RMS), (PREPACK, CAST, SUB, RMS)),
        repaired=((PREPACK, CAST, ADD, RMS, MUL), (PREPACK, CAST, SUB, RMS, MUL)),
    ),
    "methods": Model(
        lambda: OnePlus(64),
        _x(),
        stock="abort",
        codes=("EG102", "EG101"),
        ops=((RMS,), (PREPACK, PREPACK, ADD, RMS), (RMS,)),
        repaired=((PREPACK, RMS, MUL), (PREPACK, PREPACK, ADD, RMS, MUL), (RMS,)),
        methods={"a_constant": lambda: Parameter(8, 64), "right": lambda: Parameter(64)},
    ),
    "large": Model(lambda: Large(Parameter(1024)), _x(x=(1, 1024)), ops=((LINEAR, RMS),)),
    "large_faulty": Model(
        lambda: Large(OnePlus(1024)),
        _x(x=(1, 1024)),
        stock="abort",
        codes=("EG101",),
        ops=((PREPACK, PREPACK, LINEAR, ADD, RMS),),
        repaired=((PREPACK, PREPACK, LINEAR, ADD, RMS, MUL),),
    ),
}

_LAYER_NORMS = {
    "layer_norm": Model(lambda: LayerNorm(64, bias=True), _x(), ops=((LAYER,),)),
    "layer_norm_bare": Model(
        DiTBlock,
        _x((1, 1, 64), (1, 1, 64)),
        stock="abort",
        codes=("EG103", "EG106"),
        ops=((PREPACK, LAYER, CAST, ADD, CLONE, MUL, ADD),),
        repaired=((PREPACK, LAYER, CAST, ADD, CLONE, MUL, ADD),),
    ),
    "layer_norm_no_bias": Model(
        lambda: LayerNorm(64, bias=False),
        _x(),
        stock="abort",
        codes=("EG106",),
        ops=((LAYER,),),
        repaired=((LAYER,),),
    ),
    "layer_norm_runtime": Model(
        LayerNormRuntime,
        _x((64,), (64,)),
        stock="abort",
        codes=("EG101", "EG104"),
        ops=((PREPACK, CAST, ADD, SIN, CLONE, LAYER),),
        repaired=((PREPACK, CAST, ADD, SIN, CLONE, LAYER, MUL, ADD),),
    ),
    "layer_norm_runtime_weight": Model(
        lambda: LayerNormRuntimeWeight(64),
        _x((64,)),
        stock="abort",
        codes=("EG101",),
        ops=((LAYER,),),
        repaired=((PREPACK, LAYER, MUL, ADD),),
    ),
}

MODELS: Mapping[str, Model] = {
    **_MULTIPLIERS,
    **_SHAPES,
    **_DTYPES,
    **_STORAGE,
    **_IN_BUFFERS,
    **_PROGRAMS,
    **_LAYER_NORMS,
    **OP_MODELS,
    **CALL_MODELS,
}
