# SPDX-License-Identifier: Apache-2.0
"""Layer norms, and the other ops of the contract."""

from __future__ import annotations

import torch
from lowering_cases import HALF, Case, case, rand, weight
from torch import nn
from torch.nn import functional

B, T, D = 2, 3, 16
X = rand(B, T, D)
IMAGE = rand(1, 4, 8, 8)
V, W = weight(D, seed=2), weight(D)
CPU = "left to the CPU"


LAYER_NORMS: list[Case] = [
    case("layer_norm", lambda m, x: m.n(x), [X], "native_layer_norm", [],
         {"n": nn.LayerNorm(D)}),
    case("layer_norm_bare", lambda m, x: functional.layer_norm(x, (D,)), [X], "native_layer_norm",
         [("layer_norm", "unit weight")]),
    case("layer_norm_no_bias", lambda m, x: m.n(x), [X], "native_layer_norm",
         [("layer_norm", "unit weight")], {"n": nn.LayerNorm(D, bias=False)}),
    case("layer_norm_modulated", lambda m, x, s, b: functional.layer_norm(x, (D,)) * (1 + s) + b,
         [X, rand(B, 1, D), rand(B, 1, D)], "prepack native_layer_norm add mul add",
         [("layer_norm", "unit weight")]),
    case("layer_norm_runtime_weight", lambda m, x, w: functional.layer_norm(x, (D,), w),
         [X, rand(D)], "native_layer_norm mul", [("layer_norm", "unit weight")],
         reason="weight `inputs_1` float32[16] is a run-time value"),
    case("layer_norm_runtime", lambda m, x, w, b: functional.layer_norm(x, (D,), w, b),
         [X, rand(D), rand(D)], "native_layer_norm mul add", [("layer_norm", "unit weight")]),
    case("layer_norm_runtime_weight_only", lambda m, x, w: functional.layer_norm(x, (D,), w, m.b),
         [X, rand(D)], "prepack native_layer_norm mul add", [("layer_norm", "unit weight")],
         {"b": W}),
    case("layer_norm_runtime_bias", lambda m, x, b: functional.layer_norm(x, (D,), m.w, b),
         [X, rand(D)], "native_layer_norm add", [("layer_norm", "unit weight")], {"w": W}),
    case("layer_norm_one_plus", lambda m, x: functional.layer_norm(x, (D,), 1 + m.w, m.b), [X],
         "native_layer_norm", [("layer_norm", "evaluated")], {"w": W, "b": V}),
    case("layer_norm_dims", lambda m, x: m.n(x), [X], "view_copy native_layer_norm view_copy",
         [("layer_norm", "unit weight")], {"n": nn.LayerNorm((T, D))}),
    case("layer_norm_half", lambda m, x: functional.layer_norm(x, (D,)), [X.half()],
         "native_layer_norm", [("layer_norm", "unit weight")], tolerance=HALF),
    case("layer_norm_dynamic", lambda m, x, s: functional.layer_norm(x, (D,)) * s,
         [X, rand(B, 1, D)], "native_layer_norm mul", [("layer_norm", "unit weight")],
         dynamic=(({1: torch.export.Dim("t", max=8)}, None),)),
]  # fmt: skip

PRODUCTS: list[Case] = [
    case("linear", lambda m, x: functional.linear(x, m.w), [X], "view_copy linear view_copy", [],
         {"w": weight(8, D)}),
    case("linear_runtime", lambda m, x, w: functional.linear(x, w), [X, rand(8, D)],
         "permute_copy view_copy mm view_copy", [("runtime_linear", "rewritten")],
         reason="from input `inputs_1`"),
    case("linear_runtime_bias", lambda m, x, w, b: functional.linear(x, w, b),
         [X, rand(8, D), rand(8)], "view_copy permute_copy addmm view_copy",
         [("runtime_linear", "rewritten")]),
    case("linear_runtime_constant_bias", lambda m, x, w: functional.linear(x, w, m.b),
         [X, rand(8, D)], "prepack view_copy permute_copy addmm view_copy",
         [("runtime_linear", "rewritten")], {"b": weight(8)}),
    case("linear_merged", lambda m, x: functional.linear(x, m.w + m.a @ m.b), [X],
         "view_copy linear view_copy", [("runtime_linear", "evaluated")],
         {"w": weight(8, D), "a": weight(8, 2), "b": weight(2, D)}),
    case("gram", lambda m, x: x @ x.T, [X[0]], "permute_copy mm",
         [("runtime_linear", "rewritten")]),
    case("attention", lambda m, x: torch.softmax(x @ x.transpose(1, 2), -1) @ x, [X],
         "permute_copy view_copy view_copy bmm view_copy _softmax view_copy view_copy bmm "
         "view_copy", []),
]  # fmt: skip

LEFT_OUT: list[Case] = [
    case("conv_runtime", lambda m, x, w: functional.conv2d(x, w) * x[:, :1, 1:-1, 1:-1],
         [IMAGE, rand(4, 4, 3, 3)], "slice_copy.Tensor slice_copy.Tensor slice_copy.Tensor mul",
         [("audit", CPU)], cpu=["aten::convolution"]),
    case("conv_computed", lambda m, x: functional.conv2d(x, m.w * 2), [IMAGE], "convolution",
         [("evaluate_weight", "evaluated")], {"w": weight(4, 4, 3, 3)}),
    case("conv1d_runtime", lambda m, x, w: functional.conv1d(x, w) + 1,
         [rand(1, 4, 8), rand(4, 4, 3)], "prepack add", [("audit", CPU)],
         cpu=["aten::convolution"]),
    case("embedding_runtime", lambda m, i, w: functional.embedding(i, w) * 2,
         [torch.tensor([[0, 1, 2]]), rand(4, 8)], "prepack mul", [("audit", CPU)],
         cpu=["aten::embedding"]),
    case("embedding_cast", lambda m, i: functional.embedding(i, m.w.half().float()),
         [torch.tensor([[0, 1, 2]])], "embedding", [("evaluate_weight", "evaluated")],
         {"w": weight(4, 8)}),
    case("batch_norm_runtime", lambda m, x, w: functional.batch_norm(x, m.a, m.v, w) * 2,
         [IMAGE, rand(4)], "prepack mul", [("audit", CPU)],
         {"a": torch.zeros(4), "v": torch.ones(4)},
         cpu=["aten::_native_batch_norm_legit_no_training"]),
    case("group_norm", lambda m, x: m.n(x), [IMAGE], "native_group_norm", [],
         {"n": nn.GroupNorm(2, 4)}),
    case("group_norm_bare", lambda m, x: functional.group_norm(x, 2) * 2, [IMAGE], "prepack mul",
         [("audit", CPU)], cpu=["aten::native_group_norm"], reason="weight is missing"),
    case("group_norm_runtime", lambda m, x, w: functional.group_norm(x, 2, w) * 2,
         [IMAGE, rand(4)], "prepack mul", [("audit", CPU)], cpu=["aten::native_group_norm"]),
    case("group_norm_rank_3", lambda m, x: m.n(x) * 2, [rand(1, 4, 8)], "prepack mul",
         [("audit", CPU)], {"n": nn.GroupNorm(2, 4)}, cpu=["aten::native_group_norm"],
         reason="not four-dimensional"),
    case("logical_not", lambda m, x: torch.where(torch.logical_not(x > 0), x, x * 2), [X],
         ["gt.Scalar", "prepack mul where.self"], [("audit", CPU)], cpu=["aten::logical_not"],
         reason="no runtime registers aten.logical_not.default"),
    case("add_scalar", lambda m, x: torch.ops.aten.add.Scalar(x, 2.0), [X], "prepack add",
         [("scalar_operand", "rewritten")]),
]  # fmt: skip

OP_CASES: list[Case] = [*LAYER_NORMS, *PRODUCTS, *LEFT_OUT]
