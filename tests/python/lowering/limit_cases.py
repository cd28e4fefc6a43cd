# SPDX-License-Identifier: Apache-2.0
"""Calls that stock lowers, and that its runtime aborts on or gets wrong; weights apart."""

from __future__ import annotations

from typing import Any

import torch
from lowering_cases import Case, case, drawn, rand, weight
from torch import nn
from torch.nn import functional

IMAGE, ONE_IMAGE, SMALL = rand(2, 8, 6, 6), rand(1, 8, 6, 6), rand(1, 3, 4, 4)
LEFT, RIGHT = torch.tensor([[1, 2, 5], [0, 2, 4]]), torch.tensor([[1, 3, 5], [0, 2, 9]])
PLACES = torch.tensor([0, 2])
KERNEL = {"w": weight(8, 8, 3, 3)}
OUT = [("audit", "left to the CPU")]
CAST = "dim_order_ops._to_dim_order_copy"
LISTS = [("image_lists", "rewritten")]

NUMBERS: list[Case] = [
    case("one_after_one_point_zero",
         lambda m, x: functional.conv2d(torch.clamp(x, 0.0, 1.0), m.w) * 2, [ONE_IMAGE],
         "prepack clamp convolution mul", [], KERNEL),
    case("numbers_only", lambda m, x, y: (x * 2).sum() * y.sum(), [rand(2, 3), rand(3)],
         "prepack mul", OUT, cpu=["aten::sum", "aten::mul"],
         reason="neither operand has a dimension"),
    case("numbers_outside", lambda m, x, y: functional.binary_cross_entropy(x, y),
         [rand(5).sigmoid(), rand(5, seed=1).sigmoid()],
         ["full full neg", "prepack sub mul mul sub"], [],
         cpu=["aten::log", "aten::maximum", "aten::log1p", "aten::mean"]),
    case("numbers_both", lambda m, x, y: torch.where((x > 0) & (y > 0), x, y),
         [rand(1)[0], rand(1, seed=1)[0]], ["gt.Scalar gt.Scalar", "where.self"], OUT,
         cpu=["aten::bitwise_and"], reason="neither operand has a dimension"),
    case("constants_only", lambda m, x, y: torch.linalg.cross(x, y) * 2,
         [rand(4, 3), rand(4, 3, seed=1)],
         "prepack index_select index_select mul index_select index_select mul sub mul", OUT * 5,
         cpu=["aten::arange", "aten::add", "aten::remainder"], reason="would have no input"),
    case("number_by_a_number", lambda m, x, y: functional.cross_entropy(x * 2, y.softmax(1)),
         [rand(2, 3), rand(2, 3, seed=1)], ["prepack _softmax mul _log_softmax mul", "neg"], [],
         cpu=["aten::sum", "aten::div"]),
    case("softplus_of_a_number", lambda m, x: functional.softplus(x * 2, 3, 0.2) * 2,
         [rand(1)[0]], [f"prepack {CAST} exp", f"prepack gt.Scalar where.self {CAST}"],
         OUT * 4,
         cpu=["dim_order_ops::_to_dim_order_copy", "aten::mul", "aten::log1p", "aten::div"],
         reason="neither operand has a dimension"),
    case("cast_to_bool", lambda m, x: torch.where((x * 2).bool(), x, x * 3), [rand(2, 3)],
         ["prepack mul", "prepack mul where.self"], OUT,
         cpu=["dim_order_ops::_to_dim_order_copy"], reason="no shader casts to bool"),
    case("softmax_of_a_number", lambda m, x: torch.softmax(x, 0), [rand(1)[0]], [], OUT,
         cpu=["aten::_softmax"], reason="has no dimension"),
    case("integers_equal", lambda m, x, i, j: torch.where(i == j, x, x * 2),
         [rand(2, 3), LEFT, RIGHT],
         "prepack ge le bitwise_and mul where.self", [("integer_equality", "rewritten")]),
    case("divided_towards_zero", lambda m, x, y: torch.div(x * 3, y, rounding_mode="trunc") * 2,
         [rand(2, 3), rand(2, 3, seed=1)], ["prepack mul", "prepack mul"], OUT,
         cpu=["aten::div"], reason="rounds to zero"),
]  # fmt: skip

IMAGES: list[Case] = [
    case("pool_without_stride", lambda m, x: functional.avg_pool2d(x, 2, divisor_override=3) * 2,
         [IMAGE], "prepack avg_pool2d mul", LISTS),
    case("max_pool_without_stride", lambda m, x: functional.max_pool2d(x, 2) * 2, [IMAGE],
         "prepack max_pool2d_with_indices mul", LISTS),
    case("convolution_valid", lambda m, x: functional.conv2d(x, m.w, padding="valid") * 2,
         [ONE_IMAGE], "prepack convolution mul", LISTS, KERNEL),
    case("convolution_valid_of_a_batch",
         lambda m, x: functional.conv2d(x, m.w, padding="valid") * 2,
         [IMAGE], "prepack mul", [], KERNEL, cpu=["aten::convolution"]),
    case("sum_of_channels", lambda m, x: x / x.sum(1, keepdim=True) * 2, [IMAGE.abs()],
         "prepack div mul", OUT, cpu=["aten::sum"], reason="goes over dim [1] of a batch"),
    case("softmax_of_channels", lambda m, x: torch.softmax(x, 1) * 2, [IMAGE],
         "prepack mul", OUT, cpu=["aten::_softmax"], reason="goes over dim [1] of a batch"),
    case("nearest_no_multiple", lambda m, x: functional.interpolate(x, (3, 3)) * 2, [SMALL],
         "prepack mul", OUT, cpu=["aten::upsample_nearest2d"], reason="no whole multiple"),
    case("nearest_twice", lambda m, x: functional.interpolate(x, scale_factor=2) * 2, [SMALL],
         "prepack upsample_nearest2d.vec mul", []),
    case("bilinear_by_a_factor",
         lambda m, x: functional.interpolate(x, scale_factor=1.7, mode="bilinear") * 2, [SMALL],
         "prepack mul", OUT, cpu=["aten::upsample_bilinear2d"], reason="no whole number of 4"),
    case("bilinear_to_a_size",
         lambda m, x: functional.interpolate(x, (7, 5), mode="bilinear") * 2, [SMALL],
         "prepack upsample_bilinear2d.vec mul", []),
]  # fmt: skip


def _depthwise(kernel: tuple[int, int], channels: int = 8, **rest: Any) -> dict[str, nn.Module]:
    return {"c": drawn(nn.Conv2d(channels, channels, kernel, groups=channels, **rest))}


EDGE = [("depthwise_edge", "rewritten")]
DEPTHWISE: list[Case] = [
    case("depthwise_7", lambda m, x: m.c(x) * 2, [ONE_IMAGE],
         "prepack constant_pad_nd convolution mul",
         EDGE, _depthwise((7, 7), padding=3)),
    case("depthwise_of_one_channel", lambda m, x: m.c(x) * 2, [rand(1, 1, 6, 6)],
         "prepack constant_pad_nd convolution mul", EDGE, _depthwise((7, 7), 1, padding=3)),
    case("depthwise_3_by_5", lambda m, x: m.c(x) * 2, [ONE_IMAGE],
         "prepack constant_pad_nd convolution mul", EDGE, _depthwise((3, 5), padding="same")),
    case("depthwise_relu", lambda m, x: m.c(x).relu() * 2, [ONE_IMAGE],
         "prepack constant_pad_nd conv_with_clamp mul", EDGE, _depthwise((4, 4), padding=1)),
    case("depthwise_unpadded", lambda m, x: m.c(x) * 2, [ONE_IMAGE], "prepack convolution mul", [],
         _depthwise((4, 4))),
    case("depthwise_row", lambda m, x: m.c(x) * 2, [ONE_IMAGE], "prepack convolution mul", [],
         _depthwise((1, 5), padding=(0, 2))),
    case("depthwise_5", lambda m, x: m.c(x) * 2, [ONE_IMAGE], "prepack convolution mul", [],
         _depthwise((5, 5), padding=2)),
    case("depthwise_strided", lambda m, x: m.c(x) * 2, [ONE_IMAGE], "prepack mul", OUT,
         _depthwise((4, 4), stride=2), cpu=["aten::convolution"], reason="unlike its dilation"),
]  # fmt: skip


ROW = rand(1, 8, 9)
OTHER_CONVOLUTIONS: list[Case] = [
    case("transposed_and_dilated",
         lambda m, x: functional.conv_transpose2d(x, m.w, dilation=2) * 2, [ONE_IMAGE],
         "prepack mul", OUT, KERNEL, cpu=["aten::convolution"], reason="transposed, and dilated"),
    case("one_wide_strided", lambda m, x: functional.conv1d(x, m.w, stride=2) * 2, [ROW],
         "prepack mul", OUT, {"w": weight(8, 8, 1)}, cpu=["aten::convolution"],
         reason="would be ignored"),
    case("one_wide_padded", lambda m, x: functional.conv1d(x, m.w, padding=1) * 2, [ROW],
         "prepack mul", OUT, {"w": weight(8, 8, 1)}, cpu=["aten::convolution"],
         reason="would be ignored"),
    case("one_wide_in_groups", lambda m, x: functional.conv1d(x, m.w, groups=2) * 2, [ROW],
         "prepack mul", OUT, {"w": weight(8, 4, 1)}, cpu=["aten::convolution"],
         reason="in groups"),
    case("one_wide_depthwise", lambda m, x: functional.conv1d(x, m.w, groups=8) * 2, [ROW],
         "prepack mul", OUT, {"w": weight(8, 1, 1)}, cpu=["aten::convolution"],
         reason="in groups"),
    case("one_wide", lambda m, x: functional.conv1d(x, m.w) * 2, [ROW],
         "prepack convolution mul", [], {"w": weight(8, 8, 1)}),
]  # fmt: skip


INDICES: list[Case] = [
    case("index_of_rows", lambda m, x, i: x[i] * 2, [rand(5, 4), PLACES], "prepack index mul", []),
    case("gather_from_the_end", lambda m, x, i: torch.gather(x, -1, i) * 2,
         [rand(3, 5), torch.tensor([[0, 1], [2, 3], [4, 0]])], "prepack gather mul",
         [("gather_dim", "rewritten")]),
    case("index_of_columns", lambda m, x, i: x[:, i] * 2, [rand(3, 4), PLACES], "prepack mul", OUT,
         cpu=["aten::index"], reason="it has 2 indices"),
]  # fmt: skip

LIMIT_CASES: list[Case] = [*NUMBERS, *IMAGES, *DEPTHWISE, *OTHER_CONVOLUTIONS, *INDICES]
