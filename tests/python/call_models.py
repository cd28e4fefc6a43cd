# SPDX-License-Identifier: Apache-2.0
"""Small models around calls that stock refuses or gets wrong, weights apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from model import ADD, MUL, PREPACK, Inputs, Model
from norms import rand
from op_modules import Applies, Calls, Depthwise

CLAMP, CONVOLUTION = "aten.clamp.default", "aten.convolution.default"
CLAMPED, PAD = "et_vk.conv_with_clamp.default", "aten.constant_pad_nd.default"
AVERAGE, MAX_POOL = "aten.avg_pool2d.default", "aten.max_pool2d_with_indices.default"
EQUAL, WHERE = "aten.eq.Tensor", "aten.where.self"
BOTH = ("aten.ge.Tensor", "aten.le.Tensor", "aten.bitwise_and.Tensor")
SOFTMAX, DIVIDE, INDEX = "aten._softmax.default", "aten.div.Tensor_mode", "aten.index.Tensor"
NEAREST, BILINEAR = "aten.upsample_nearest2d.vec", "aten.upsample_bilinear2d.vec"
GREATER = "aten.gt.Scalar"

HEIGHT = torch.export.Dim("height", max=32)
IMAGE, ROW = (1, 8, 9, 11), (1, 8, 9)


def _inputs(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], Inputs]:
    return lambda: tuple(rand(*shape, dtype=dtype, seed=7 + i) for i, shape in enumerate(shapes))


def _integers() -> Inputs:
    x, left = rand(2, 3), torch.tensor([[1, 2, 5], [0, 2, 4]])
    return x, left, torch.tensor([[1, 3, 5], [0, 2, 9]])


def _model(
    module: Callable[[], nn.Module],
    inputs: Callable[[], Inputs],
    stock: Any,
    codes: str,
    ops: tuple[str, ...],
    repaired: tuple[str, ...] | None = None,
    cpu: int = 0,
    **more: Any,
) -> Model:
    after = None if repaired is None else (repaired,)
    return Model(module, inputs, stock, tuple(codes.split()), (ops,), after, cpu=cpu, **more)


def _calls(function: Callable[..., Tensor]) -> Callable[[], nn.Module]:
    return lambda: Calls(function)


def _applies(function: Callable[..., Tensor], *weight: int) -> Callable[[], nn.Module]:
    return lambda: Applies(function, *weight)


_NUMBERS = {
    "integer_after_a_float": _model(
        _applies(lambda w, x: functional.conv2d(torch.clamp(x, 0.0, 1.0), w), 8, 8, 3, 3),
        _inputs(IMAGE),
        "abort",
        "EG210",
        (CLAMP, CONVOLUTION),
        (CLAMP, CONVOLUTION),
    ),
    "pool_divisor_after_a_float": _model(
        _calls(lambda x: functional.avg_pool2d(torch.clamp(x, 0.0, 3.0), 2, 2, divisor_override=3)),
        _inputs(IMAGE),
        "wrong",
        "EG214",
        (CLAMP, AVERAGE),
        (CLAMP, AVERAGE),
    ),
    "sum_of_numbers": _model(
        _calls(lambda x, y: torch.softmax(x, 0) * y.abs()),
        lambda: (rand(1)[0], rand(1, seed=1)[0]),
        "abort",
        "EG216 EG216",
        (SOFTMAX, "aten.abs.default", MUL),
        cpu=2,
    ),
    "both_numbers": _model(
        _calls(lambda x, y: torch.where((x > 0) & (y > 0), x, y)),
        lambda: (rand(1)[0], rand(1, seed=1)[0]),
        "abort",
        "EG216",
        (GREATER, GREATER, "aten.bitwise_and.Tensor", WHERE),
        cpu=1,
    ),
    "integers_equal": _model(
        _calls(lambda x, i, j: torch.where(i == j, x, x + x)),
        _integers,
        "abort",
        "EG215",
        (EQUAL, ADD, WHERE),
        (*BOTH, ADD, WHERE),
    ),
    "divided_towards_zero": _model(
        _calls(lambda x, y: torch.div(x * 3.0, y, rounding_mode="trunc")),
        lambda: (rand(2, 3), torch.ones(2, 3)),
        "wrong",
        "EG217",
        (PREPACK, MUL, DIVIDE),
        cpu=1,
    ),
    "divided_downwards": _model(
        _calls(lambda x, y: torch.div(x * 3.0, y, rounding_mode="floor")),
        _inputs((2, 3), (2, 3)),
        "right",
        "",
        (PREPACK, MUL, DIVIDE),
    ),
    "gather": _model(
        _calls(lambda x, i: torch.gather(x, 1, i)),
        lambda: (rand(3, 5), torch.tensor([[0, 1], [2, 3], [4, 0]])),
        "right",
        "",
        ("aten.gather.default",),
    ),
    "gather_from_the_end": _model(
        _calls(lambda x, i: torch.gather(x, -1, i)),
        lambda: (rand(3, 5), torch.tensor([[0, 1], [2, 3], [4, 0]])),
        "wrong",
        "EG221",
        ("aten.gather.default",),
        ("aten.gather.default",),
    ),
    "index_of_columns": _model(
        _calls(lambda x, i: x[:, i] * 2.0),
        lambda: (rand(3, 4), torch.tensor([0, 2])),
        "abort",
        "EG218",
        (PREPACK, INDEX, MUL),
        cpu=1,
    ),
}

_LISTS = {
    "pool_without_stride": _model(
        _calls(lambda x: functional.avg_pool2d(x, 2)),
        _inputs(IMAGE),
        "abort",
        "EG211",
        (AVERAGE,),
        (AVERAGE,),
    ),
    "max_pool_without_stride": _model(
        _calls(lambda x: functional.max_pool2d(x, (3, 2))),
        _inputs((2, 8, 9, 11)),
        "abort",
        "EG211",
        (MAX_POOL,),
        (MAX_POOL,),
    ),
    "convolution_valid": _model(
        _applies(lambda w, x: functional.conv2d(x, w, padding="valid"), 8, 8, 3, 3),
        _inputs(IMAGE),
        "abort",
        "EG211",
        (CONVOLUTION,),
        (CONVOLUTION,),
    ),
}


def _depthwise(*kernel: int, channels: int = 8, **options: Any) -> Callable[[], nn.Module]:
    return lambda: Depthwise(*kernel, channels=channels, **options)


def _edge(
    module: Callable[[], nn.Module],
    inputs: Callable[[], Inputs],
    codes: str = "EG212",
    stock: str = "wrong",
    **more: Any,
) -> Model:
    return _model(module, inputs, stock, codes, (CONVOLUTION,), (PAD, CONVOLUTION), **more)


_CONVOLUTIONS = {
    "depthwise_7": _edge(_depthwise(7, 7, padding=3), _inputs(IMAGE)),
    "depthwise_dilated": _edge(
        _depthwise(4, 7, padding=(2, 5), dilation=2, stride=2), _inputs((1, 8, 17, 23))
    ),
    "depthwise_wider_than_its_image": _edge(_depthwise(7, 9, padding=4), _inputs((1, 8, 5, 3))),
    "depthwise_same": _edge(_depthwise(3, 5, padding="same"), _inputs(IMAGE)),
    "depthwise_of_one_channel": _edge(
        _depthwise(7, 7, channels=1, padding=3), _inputs((1, 1, 9, 11))
    ),
    "depthwise_half": _edge(
        lambda: _depthwise(7, 7, padding=3)().half(),
        _inputs(IMAGE, dtype=torch.float16),
        tolerance=2e-3,
    ),
    "depthwise_dynamic": _edge(
        _depthwise(7, 7, padding=3),
        _inputs(IMAGE),
        options={"require_dynamic_shapes": True},
        dynamic={"x": {2: HEIGHT}},
    ),
    "depthwise_relu": _model(
        _applies(lambda w, x: functional.conv2d(x, w, padding=1, groups=8).relu(), 8, 1, 4, 4),
        _inputs(IMAGE),
        "wrong",
        "EG212",
        (CLAMPED,),
        (PAD, CLAMPED),
    ),
    "depthwise_unpadded": _model(_depthwise(7, 7), _inputs(IMAGE), "right", "", (CONVOLUTION,)),
    "depthwise_3": _model(_depthwise(3, 3, padding=1), _inputs(IMAGE), "right", "", (CONVOLUTION,)),
    "depthwise_row": _model(
        _depthwise(1, 5, padding=(0, 2)), _inputs(IMAGE), "right", "", (CONVOLUTION,)
    ),
    "depthwise_strided": _model(
        _depthwise(4, 4, stride=2), _inputs(IMAGE), "abort", "EG213", (CONVOLUTION,), cpu=1
    ),
    "transposed_and_dilated": _model(
        _applies(lambda w, x: functional.conv_transpose2d(x, w, dilation=2), 8, 8, 3, 3),
        _inputs(IMAGE),
        "abort",
        "EG213",
        (CONVOLUTION,),
        cpu=1,
    ),
    "row_in_groups": _model(
        _applies(lambda w, x: functional.conv1d(x, w, groups=2), 8, 4, 1),
        _inputs(ROW),
        "abort",
        "EG213",
        (CONVOLUTION,),
        cpu=1,
    ),
    "row_strided": _model(
        _applies(lambda w, x: functional.conv1d(x, w, stride=2), 8, 8, 1),
        _inputs(ROW),
        "wrong",
        "EG214",
        (CONVOLUTION,),
        cpu=1,
    ),
    "row_padded": _model(
        _applies(lambda w, x: functional.conv1d(x, w, padding=1), 8, 8, 1),
        _inputs(ROW),
        "wrong",
        "EG214",
        (CONVOLUTION,),
        cpu=1,
    ),
    "row": _model(
        _applies(lambda w, x: functional.conv1d(x, w), 8, 8, 1),
        _inputs(ROW),
        "right",
        "",
        (CONVOLUTION,),
    ),
}

_RESAMPLING = {
    "nearest_no_multiple": _model(
        _calls(lambda x: functional.interpolate(x, (6, 7))),
        _inputs((1, 3, 4, 5)),
        "wrong",
        "EG219",
        (NEAREST,),
        cpu=1,
    ),
    "nearest_thrice": _model(
        _calls(lambda x: functional.interpolate(x, (12, 10))),
        _inputs((1, 3, 4, 5)),
        "right",
        "",
        (NEAREST,),
    ),
    "bilinear_by_a_factor": _model(
        _calls(lambda x: functional.interpolate(x, scale_factor=1.7, mode="bilinear")),
        _inputs((1, 3, 4, 5)),
        "abort",
        "EG220",
        (BILINEAR,),
        cpu=1,
    ),
    "bilinear_to_a_size": _model(
        _calls(lambda x: functional.interpolate(x, (7, 5), mode="bilinear")),
        _inputs((1, 3, 4, 5)),
        "right",
        "",
        (BILINEAR,),
    ),
}

CALL_MODELS: Mapping[str, Model] = {**_NUMBERS, **_LISTS, **_CONVOLUTIONS, **_RESAMPLING}
