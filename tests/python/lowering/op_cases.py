# SPDX-License-Identifier: Apache-2.0
"""Layer norms, and the other ops of the contract."""

from __future__ import annotations

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (registers the ops)
import torch
from lowering_cases import HALF, Case, case, rand, rms, weight
from torch import nn
from torch.nn import functional

torch.manual_seed(0)  # for modules, which draw their own weights
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
    # A convolution on the CPU between two linear layers whose weights are parts of one parameter.
    case("linear_parts", lambda m, x, k: (lambda a, b: functional.linear(functional.conv1d(
        functional.linear(x, a), k), b))(*m.w.split(D)), [X, rand(T, T, 1)],
         ["prepack split_with_sizes_copy view_copy linear view_copy",
          "permute_copy view_copy mm view_copy"],
         [("runtime_linear", "evaluated"), ("runtime_linear", "rewritten"), ("audit", CPU)],
         {"w": weight(2 * D, D)}, cpu=["aten::convolution"]),
    case("linear_of_itself", lambda m, x: x[..., :8] + functional.linear(m.w, m.w).sum(1), [X],
         "prepack slice_copy.Tensor add", [("constant_value", "evaluated")], {"w": weight(8, D)}),
    case("attention_module", lambda m, x, y: m.a(x, y, y, need_weights=False)[0],
         [X[0], rand(5, D)],
         "prepack prepack unsqueeze_copy unsqueeze_copy unsqueeze_copy squeeze_copy.dims linear "
         "view_copy squeeze_copy.dims linear view_copy squeeze_copy.dims linear view_copy "
         "permute_copy permute_copy permute_copy view_copy view_copy view_copy mul permute_copy "
         "mul squeeze_copy.dims squeeze_copy.dims bmm view_copy _softmax amax eq bitwise_not "
         "bitwise_not full_like where.self squeeze_copy.dims bmm view_copy permute_copy "
         "permute_copy permute_copy view_copy linear unsqueeze_copy squeeze_copy.dims",
         [("runtime_linear", "evaluated")] * 3
         + [("masked_rows", "rewritten"), ("logical_not", "rewritten")]
         + [("scalar_operand", "rewritten")] * 2, {"a": nn.MultiheadAttention(D, 2)}),
    case("linear_bias_runtime", lambda m, x, b: functional.linear(x, m.w, b), [X, rand(8)],
         "view_copy linear add view_copy", [("runtime_linear", "rewritten")], {"w": weight(8, D)},
         reason="bias `inputs_1` float32[8] is a run-time value"),
    case("linear_bias_computed", lambda m, x: functional.linear(x, m.w, m.b * 2), [X],
         "view_copy linear view_copy", [("runtime_linear", "evaluated")],
         {"w": weight(8, D), "b": weight(8)}),
    case("attention", lambda m, x: torch.softmax(x @ x.transpose(1, 2), -1) @ x, [X],
         "permute_copy view_copy view_copy bmm view_copy _softmax view_copy view_copy bmm "
         "view_copy", []),
]  # fmt: skip


def _half_turned(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    turned, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    return torch.cat((turned * cos + _half_turned(turned) * sin, rest), -1)


def _turn(m: nn.Module, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    cos, sin = m.cos.unsqueeze(1), m.sin.unsqueeze(1)
    return _turned(q, cos, sin), _turned(k, cos, sin)


def _table(*shape: int) -> dict[str, torch.Tensor]:
    """Cosines and sines of the same angles in both halves, as models have them."""
    angles = rand(*shape[:-1], shape[-1] // 2, seed=3).repeat(*[1] * (len(shape) - 1), 2)
    return {"cos": nn.Parameter(angles.cos()), "sin": nn.Parameter(angles.sin())}


_PLAIN_TURN = (
    " slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor neg slice_copy.Tensor cat mul add"
    " cat"
)

ROTARY: list[Case] = [
    case("rotary", _turn, [rand(1, T, 4, D), rand(1, T, 2, D)],
         "prepack prepack apply_rotary_emb_hf", [],
         _table(T, 8)),
    case("rotary_heads_first", _turn, [rand(1, 4, T, D), rand(1, 2, T, D)],
         "prepack prepack unsqueeze_copy unsqueeze_copy" + 2 * _PLAIN_TURN, [],
         _table(1, T, 8)),
    case("rotary_heads_first_alike", _turn, [rand(1, 4, T, D), rand(1, 4, T, D)],
         "prepack prepack unsqueeze_copy unsqueeze_copy" + 2 * _PLAIN_TURN, [],
         _table(1, T, 8)),
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
    case("embedding_cast", lambda m, i: functional.embedding(i, m.w.half().float()),
         [torch.tensor([[0, 1, 2]])], "embedding", [("evaluate_weight", "evaluated")],
         {"w": weight(4, 8)}),
    case("pad_by_a_size", lambda m, x, y: functional.pad(x, (0, 0, 0, y.shape[1])) * 2,
         [X, rand(B, 2, D)], "prepack mul", [("audit", CPU)] * 2,
         cpu=["aten::sym_size", "aten::constant_pad_nd"],
         reason="in argument 1, is a size that only running tells",
         dynamic=(({1: torch.export.Dim("t", max=8)}, {1: torch.export.Dim("u", max=8)}),)),
    case("view_of_a_size", lambda m, x: (x * 2).reshape(B, -1, 4), [X],
         "prepack mul view_copy", [],
         dynamic=(({1: torch.export.Dim("t", max=8)},),)),
    case("logical_not", lambda m, x: torch.where(torch.logical_not(x > 0), x, x * 2), [X],
         "prepack gt.Scalar bitwise_not mul where.self", [("logical_not", "rewritten")]),
    case("add_scalar", lambda m, x: torch.ops.aten.add.Scalar(x, 2.0), [X], "prepack add",
         [("scalar_operand", "rewritten")]),
]  # fmt: skip


def _drawn(module: nn.Module) -> nn.Module:
    """With parameters and statistics that are not those it starts with."""
    for index, tensor in enumerate([*module.parameters(), *module.buffers()]):
        if tensor.is_floating_point():
            tensor.data = rand(*tensor.shape, seed=index).abs() + 0.5
    return module


def _stats(size: int) -> dict[str, torch.Tensor]:
    return {"a": rand(size, seed=4), "v": rand(size, seed=5).abs() + 0.5}


C = 6
IMAGES = rand(2, C, 5, 7)
ROWS3 = rand(2, C, 11)
GROUP, BATCH = "native_group_norm", "_native_batch_norm_legit_no_training"
ONE = [("channel_norm", "unit weight")]
SEEN = [("channel_norm", "rewritten")]
BY_COLUMN, PLUS_COLUMN = " view_copy clone mul", " view_copy clone add"

CHANNEL_NORMS: list[Case] = [
    case("group_norm", lambda m, x: m.n(x), [IMAGES], GROUP, [], {"n": _drawn(nn.GroupNorm(2, C))}),
    case("group_norm_bare", lambda m, x: functional.group_norm(x, 2), [IMAGES], GROUP, ONE),
    case("group_norm_runtime", lambda m, x, w, b: functional.group_norm(x, 2, w, b),
         [IMAGES, rand(C), rand(C, seed=1)], GROUP + BY_COLUMN + PLUS_COLUMN, ONE,
         reason="weight `inputs_1` float32[6] is a run-time value"),
    case("group_norm_runtime_weight", lambda m, x, w: functional.group_norm(x, 3, w, m.b),
         [IMAGES, rand(C)], "prepack " + GROUP + BY_COLUMN + PLUS_COLUMN, ONE, {"b": weight(C)}),
    case("group_norm_runtime_bias", lambda m, x, b: functional.group_norm(x, 3, m.w, b),
         [IMAGES, rand(C)], GROUP + PLUS_COLUMN, ONE, {"w": weight(C)}),
    case("group_norm_one_plus", lambda m, x: functional.group_norm(x, 2, 1 + m.w), [IMAGES], GROUP,
         [("channel_norm", "evaluated")], {"w": weight(C)}),
    case("group_norm_half", lambda m, x, w: functional.group_norm(x, 2, w),
         [IMAGES.half(), rand(C).half()], GROUP + BY_COLUMN, ONE, tolerance=HALF),
    case("group_norm_rank_2", lambda m, x: m.n(x), [rand(3, C)], f"view_copy {GROUP} view_copy",
         SEEN, {"n": _drawn(nn.GroupNorm(2, C))}),
    case("group_norm_rank_3", lambda m, x: m.n(x), [ROWS3],
         f"unsqueeze_copy {GROUP} squeeze_copy.dims", SEEN, {"n": _drawn(nn.GroupNorm(2, C))}),
    case("group_norm_rank_5", lambda m, x: m.n(x), [rand(2, 4, 3, 5, 7)],
         f"view_copy clone {GROUP} clone view_copy", SEEN, {"n": _drawn(nn.GroupNorm(2, 4))}),
    case("group_norm_too_large", lambda m, x: functional.group_norm(x, 1) * 2,
         [rand(1, 1, 1, 16400)], "prepack mul", [("channel_norm", CPU)],
         cpu=["aten::native_group_norm"], reason="is too large for a texture"),
    case("batch_norm", lambda m, x: m.n(x), [IMAGES], BATCH, [], {"n": _drawn(nn.BatchNorm2d(C))}),
    case("batch_norm_bare", lambda m, x: m.n(x), [IMAGES], BATCH, ONE,
         {"n": _drawn(nn.BatchNorm2d(C, affine=False))}),
    case("batch_norm_runtime", lambda m, x, w, b: functional.batch_norm(x, m.a, m.v, w, b),
         [IMAGES, rand(C), rand(C, seed=1)], BATCH + BY_COLUMN + PLUS_COLUMN, ONE, _stats(C)),
    case("batch_norm_computed", lambda m, x: functional.batch_norm(x, m.a * 2, m.v + 1, m.w - 1),
         [IMAGES], BATCH, [("channel_norm", "evaluated")], {"w": weight(C), **_stats(C)}),
    case("batch_norm_runtime_mean", lambda m, x, a: functional.batch_norm(x, a, m.v) * 2,
         [IMAGES, rand(C)], "prepack mul", [("channel_norm", CPU)], _stats(C),
         cpu=["aten::_native_batch_norm_legit_no_training"], reason="from input `inputs_1`"),
    case("batch_norm_1d", lambda m, x: m.n(x), [ROWS3],
         f"unsqueeze_copy {BATCH} squeeze_copy.dims", SEEN, {"n": _drawn(nn.BatchNorm1d(C))}),
    case("batch_norm_rank_2", lambda m, x: m.n(x), [rand(3, C)], f"view_copy {BATCH} view_copy",
         SEEN, {"n": _drawn(nn.BatchNorm1d(C))}),
    case("batch_norm_3d", lambda m, x: m.n(x), [rand(2, 4, 3, 5, 7)],
         f"view_copy clone {BATCH} clone view_copy", SEEN, {"n": _drawn(nn.BatchNorm3d(4))}),
    case("batch_norm_1d_dynamic", lambda m, x: m.n(x), [ROWS3],
         f"view_copy {BATCH} view_copy", SEEN, {"n": _drawn(nn.BatchNorm1d(C))},
         dynamic=(({2: torch.export.Dim("t", max=16)},),)),
    case("batch_norm_of_the_batch", lambda m, x: m.n(x) * 2, [IMAGES], "prepack mul",
         [("channel_norm", CPU)], {"n": nn.BatchNorm2d(C, track_running_stats=False)},
         cpu=["aten::_native_batch_norm_legit"], reason="the statistics of several batches"),
    case("instance_norm", lambda m, x: functional.instance_norm(x), [IMAGES],
         f"view_copy {GROUP} view_copy", ONE),
    case("instance_norm_affine", lambda m, x: m.n(x), [IMAGES], f"view_copy {GROUP} view_copy",
         [("channel_norm", "evaluated")], {"n": _drawn(nn.InstanceNorm2d(C, affine=True))}),
    case("instance_norm_1d", lambda m, x: m.n(x), [ROWS3], f"view_copy {GROUP} view_copy",
         [("channel_norm", "evaluated")], {"n": _drawn(nn.InstanceNorm1d(C, affine=True))}),
    case("instance_norm_runtime",
         lambda m, x, w, b: functional.instance_norm(x, weight=w, bias=b),
         [IMAGES, rand(C), rand(C, seed=1)],
         f"repeat repeat view_copy {GROUP}{BY_COLUMN}{PLUS_COLUMN} view_copy", ONE),
]  # fmt: skip

TABLE = [("runtime_embedding", "rewritten")]
EMBEDDINGS: list[Case] = [
    case("embedding_runtime", lambda m, i, w: functional.embedding(i, w),
         [torch.tensor([[0, 1, 3], [2, 2, 1]]), rand(4, 8)], "view_copy index_select view_copy",
         TABLE, reason="table `inputs_1` float32[4, 8] is a run-time value, from input `inputs_1`"),
    case("embedding_runtime_row", lambda m, i, w: functional.embedding(i, w),
         [torch.tensor([3, 1, 0, 2, 2]), rand(4, 7)], "index_select", TABLE),
    case("embedding_runtime_dynamic", lambda m, i, w: functional.embedding(i, w) * 2,
         [torch.tensor([3, 1, 0, 2, 2]), rand(4, 8)], "prepack mul",
         [("runtime_embedding", CPU)], cpu=["aten::embedding"], reason="sizes are dynamic",
         dynamic=(({0: torch.export.Dim("t", max=8)}, None),)),
    case("embedding_runtime_large", lambda m, i, w: functional.embedding(i, w) * 2,
         [torch.tensor([[0, 16399]]), rand(16400, 4)], "prepack mul",
         [("runtime_embedding", CPU)], cpu=["aten::embedding"], reason="too large for a texture"),
]  # fmt: skip

_Q = torch.ops.quantized_decomposed


def _rounded(w: torch.Tensor) -> torch.Tensor:
    """Quantized to eight bits and back: 0.05 apart, off by up to 0.025."""
    quantized = _Q.quantize_per_tensor.default(w, 0.05, 0, -128, 127, torch.int8)
    return _Q.dequantize_per_tensor.default(quantized, 0.05, 0, -128, 127, torch.int8)


def _eight_bits(m: nn.Module) -> torch.Tensor:
    return _Q.dequantize_per_channel.default(m.w, m.s, m.z, 0, -128, 127, torch.int8)


EIGHT = {
    "w": nn.Parameter((rand(8, D) * 40).to(torch.int8), requires_grad=False),
    "s": nn.Parameter(rand(8).abs() / 40, requires_grad=False),
    "z": nn.Parameter(torch.zeros(8, dtype=torch.int32), requires_grad=False),
}

QUANTIZED: list[Case] = [
    case("rounded_norm", lambda m, x: rms(x) * _rounded(m.w), [X], "rms_norm",
         [("rms_norm", "evaluated")], {"w": W}),
    case("rounded_norm_td", lambda m, x: rms(x) * _rounded(m.w), [X], "prepack rms_norm mul",
         [("rms_norm", "unit weight"), ("constant_value", "evaluated")], {"w": weight(T, D)}),
    case("rounded_sum", lambda m, x: x + _rounded(m.w), [X], "prepack add",
         [("constant_value", "evaluated")], {"w": W}),
    case("rounded_linear", lambda m, x: functional.linear(x, _rounded(m.w)), [X],
         "view_copy linear view_copy", [("runtime_linear", "evaluated")], {"w": weight(8, D)}),
    case("rounded_conv", lambda m, x: functional.conv2d(x, _rounded(m.w)), [IMAGE], "convolution",
         [("evaluate_weight", "evaluated")], {"w": weight(4, 4, 3, 3)}),
    case("eight_bit_linear", lambda m, x: functional.linear(x, _eight_bits(m)), [X],
         "view_copy linear view_copy", [("constant_value", "evaluated")], EIGHT),
    case("eight_bit_sum", lambda m, x: x[..., :8] + _eight_bits(m).sum(1), [X],
         "prepack slice_copy.Tensor add", [("constant_value", "evaluated")], EIGHT),
]  # fmt: skip

OP_CASES: list[Case] = [
    *LAYER_NORMS,
    *PRODUCTS,
    *ROTARY,
    *CHANNEL_NORMS,
    *EMBEDDINGS,
    *LEFT_OUT,
    *QUANTIZED,
]
