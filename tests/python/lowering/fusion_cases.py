# SPDX-License-Identifier: Apache-2.0
"""Patterns of floats that stock fuses or rewrites without asking whether its op computes them."""

from __future__ import annotations

from typing import Any

import torch
from lowering_cases import Case, case, drawn, rand, weight
from quantized_cases import APART, QUANTIZED_CASES, K, N, constant
from torch import Tensor, nn
from torch.nn import functional


def _halves(x: Tensor, flipped: bool) -> Tensor:
    half = x.shape[-1] // 2  # By slices: chunks make other ops.
    first, second = x[..., :half], x[..., half:]
    return torch.cat((-first, second) if flipped else (-second, first), -1)


def _turn(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, flipped: bool = False, last: bool = False
) -> tuple[Tensor, Tensor]:
    """Queries and keys turned as transformers have it: the first elements, or the last."""
    cos, sin, size = cos.unsqueeze(1), sin.unsqueeze(1), cos.shape[-1]

    def turned(x: Tensor) -> Tensor:
        parts = (x[..., -size:], x[..., :-size]) if last else (x[..., :size], x[..., size:])
        return torch.cat((parts[0] * cos + _halves(parts[0], flipped) * sin, parts[1]), -1)

    return turned(q), turned(k)


def _turn_pairs(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, swapped: bool = False
) -> tuple[Tensor, Tensor]:
    """Queries and keys [B, T, H, D] turned in pairs, by tables [T, D / 2]."""
    cos, sin = (table.view(1, q.shape[1], 1, -1) for table in (cos, sin))

    def turned(x: Tensor) -> Tensor:
        a, b = x.float().reshape((*x.shape[:-1], -1, 2)).unbind(-1)
        if swapped:
            a, b = b, a
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(3).type_as(x)

    return turned(q), turned(k)


def tables(rows: int, size: int) -> dict[str, Any]:
    """Tables of one angle for both halves of a row."""
    angles = rand(rows, size // 2, seed=3).repeat(1, 2)
    return {"c": constant(angles.cos()), "s": constant(angles.sin())}


PAIR = [rand(1, 3, 4, K), rand(1, 3, 2, K)]
HALF_TABLES = {"c": weight(3, 8), "s": weight(3, 8, seed=2)}

ROTARY: list[Case] = [
    case("rotary_rows", lambda m, q, k: _turn(q, k, m.c[2:5], m.s[2:5]), PAIR,
         "prepack prepack apply_rotary_emb_hf",
         [],
         tables(7, 8)),
    case("rotary_other_rows", lambda m, q, k: _turn(q, k, m.c[2:5], m.s[1:4]), PAIR,
         "prepack prepack slice_copy.Tensor slice_copy.Tensor unsqueeze_copy "
         "unsqueeze_copy slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor "
         "slice_copy.Tensor neg cat mul add cat slice_copy.Tensor slice_copy.Tensor mul "
         "slice_copy.Tensor slice_copy.Tensor neg cat mul add cat",
         [],
         tables(7, 8)),
    case("rotary_one_slice", lambda m, q, k: _turn(q, k, m.c[2:5], m.s), PAIR,
         "prepack prepack slice_copy.Tensor unsqueeze_copy unsqueeze_copy "
         "slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor slice_copy.Tensor neg "
         "cat mul add cat slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor "
         "slice_copy.Tensor neg cat mul add cat",
         [],
         {"c": tables(7, 8)["c"], "s": tables(3, 8)["s"]}),
    case("rotary_columns", lambda m, q, k: _turn(q, k, m.c[:, :8], m.s[:, :8]), PAIR,
         "prepack prepack slice_copy.Tensor slice_copy.Tensor unsqueeze_copy "
         "unsqueeze_copy slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor "
         "slice_copy.Tensor neg cat mul add cat slice_copy.Tensor slice_copy.Tensor mul "
         "slice_copy.Tensor slice_copy.Tensor neg cat mul add cat",
         [],
         tables(3, 16)),
    case("rotary_every_other_row", lambda m, q, k: _turn(q, k, m.c[0:6:2], m.s[0:6:2]), PAIR,
         "prepack prepack slice_copy.Tensor slice_copy.Tensor unsqueeze_copy "
         "unsqueeze_copy slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor "
         "slice_copy.Tensor neg cat mul add cat slice_copy.Tensor slice_copy.Tensor mul "
         "slice_copy.Tensor slice_copy.Tensor neg cat mul add cat",
         [], tables(7, 8)),
    case("rotary_flipped", lambda m, q, k: _turn(q, k, m.c, m.s, flipped=True), PAIR,
         "prepack prepack unsqueeze_copy unsqueeze_copy slice_copy.Tensor "
         "slice_copy.Tensor mul slice_copy.Tensor slice_copy.Tensor neg cat mul add cat "
         "slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor slice_copy.Tensor neg "
         "cat mul add cat",
         [],
         tables(3, 8)),
    case("rotary_last", lambda m, q, k: _turn(q, k, m.c, m.s, last=True), PAIR,
         "prepack prepack unsqueeze_copy unsqueeze_copy slice_copy.Tensor "
         "slice_copy.Tensor mul slice_copy.Tensor slice_copy.Tensor neg cat mul add cat "
         "slice_copy.Tensor slice_copy.Tensor mul slice_copy.Tensor slice_copy.Tensor neg "
         "cat mul add cat",
         [],
         tables(3, 8)),
    case("rotary_pairs", lambda m, q, k: _turn_pairs(q, k, m.c, m.s), PAIR,
         "prepack prepack apply_rotary_emb",
         [], HALF_TABLES),
    case("rotary_pairs_swapped", lambda m, q, k: _turn_pairs(q, k, m.c, m.s, swapped=True), PAIR,
         ["prepack prepack view_copy view_copy view_copy slice_copy.Tensor "
         "slice_copy.Tensor squeeze_copy.dims squeeze_copy.dims mul mul sub mul mul add "
         "unsqueeze_copy unsqueeze_copy view_copy slice_copy.Tensor slice_copy.Tensor "
         "squeeze_copy.dims squeeze_copy.dims mul mul sub mul mul add unsqueeze_copy "
         "unsqueeze_copy",
          "view_copy view_copy"],
         [], HALF_TABLES,
         cpu=["aten::cat"]),
]  # fmt: skip

PRODUCTS: list[Case] = [
    case("addmm_factors", lambda m, x: torch.addmm(m.b, x, m.w.t(), beta=0.5, alpha=2.0),
         [rand(3, K)],
         "prepack prepack permute_copy addmm",
         APART, {"w": weight(N, K), "b": weight(N)},
         reason="factors beta 0.5 and alpha 2.0"),
    case("addmm_matrix", lambda m, x: torch.addmm(m.b, x, m.w.t()), [rand(3, K)],
         "prepack linear add",
         APART, {"w": weight(N, K), "b": weight(3, N)},
         reason="bias float32[3, 8] is not one row"),
    case("mm_not_transposed", lambda m, x: torch.mm(x, m.w.permute(0, 1)), [rand(3, K)],
         "prepack permute_copy mm",
         APART, {"w": weight(K, K)}, reason="not transposed"),
]  # fmt: skip


def _norm(size: int) -> nn.Module:
    """A batch norm with statistics."""
    norm = nn.BatchNorm2d(size)
    for seed, tensor in enumerate((norm.weight, norm.bias, norm.running_mean, norm.running_var)):
        tensor.data = rand(size, seed=10 + seed + size).abs() + 0.5
    return norm


def _convolution(kind: type[nn.Module], **rest: Any) -> nn.Module:
    return drawn(kind(8, 8, 3, **rest))


PASSES: list[Case] = [
    case("batch_norms_of_one_convolution", lambda m, x: m.a(m.c(x)) + m.b(m.c(x * 2)),
         [rand(1, 8, 6, 6)],
         "prepack convolution _native_batch_norm_legit_no_training mul convolution "
         "_native_batch_norm_legit_no_training add",
         [],
         {"c": _convolution(nn.Conv2d), "a": _norm(8), "b": nn.BatchNorm2d(8)}),
    case("gelu_tanh_of_one_row", lambda m, x: functional.gelu(x, approximate="tanh"),
         [rand(2, 1, K)],
         "gelu",
         []),
]  # fmt: skip

OUT = [("audit", "left to the CPU")]
GROUPS: list[Case] = [
    case("groups_of_four", lambda m, x: m.c(x) * 2, [rand(1, 8, 6, 6)], "prepack convolution mul",
         [], {"c": drawn(nn.Conv2d(8, 8, 3, groups=2))}),
    case("groups_of_one", lambda m, x: m.c(x) * 2, [rand(1, 6, 6, 6)], "prepack convolution mul",
         [], {"c": drawn(nn.Conv2d(6, 6, 3, groups=6))}),
    case("groups_of_two", lambda m, x: m.c(x) * 2, [rand(1, 4, 6, 6)], "prepack mul", OUT,
         {"c": drawn(nn.Conv2d(4, 8, 3, groups=2))}, cpu=["aten::convolution"],
         reason="not of fours"),
    case("groups_of_three", lambda m, x: m.c(x) * 2, [rand(1, 8, 6, 6)], "prepack mul", OUT,
         {"c": drawn(nn.Conv2d(8, 6, 3, groups=2))}, cpu=["aten::convolution"],
         reason="not of fours"),
    case("groups_transposed", lambda m, x: m.c(x) * 2, [rand(1, 8, 6, 6)], "prepack mul", OUT,
         {"c": drawn(nn.ConvTranspose2d(8, 8, 3, groups=2))}, cpu=["aten::convolution"],
         reason="transposed, and in groups"),
]  # fmt: skip

FUSION_CASES: list[Case] = [*QUANTIZED_CASES, *ROTARY, *PRODUCTS, *PASSES, *GROUPS]
