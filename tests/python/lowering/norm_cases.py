# SPDX-License-Identifier: Apache-2.0
"""RMS norms: every multiplier, every form, every dtype."""

from __future__ import annotations

import torch
from lowering_cases import HALF, Case, case, rand, rms, weight
from torch import nn
from torch.nn import functional

torch.manual_seed(0)  # for modules, which draw their own weights
B, T, D = 2, 3, 16
X = rand(B, T, D)
BIG = (rand(B, T, D) * 500).half()
W = weight(D)
H = weight(D, dtype=torch.float16)
UNIT, FOLDED, EVALUATED, UNFUSED = "unit weight", "folded", "evaluated", "left unfused"

_SEQ = torch.export.Dim("t", max=8)
_ONE_DYNAMIC = (({1: _SEQ},),)
_TWO_DYNAMIC = (({1: _SEQ}, {1: _SEQ}),)

CONSTANT: list[Case] = [
    case("leaf", lambda m, x: rms(x) * m.w, [X], "rms_norm", FOLDED, {"w": W}),
    case("left", lambda m, x: m.w * rms(x), [X], "rms_norm", FOLDED, {"w": W}),
    case("one_plus", lambda m, x: rms(x) * (1.0 + m.w), [X], "rms_norm", EVALUATED, {"w": W}),
    case(
        "casts", lambda m, x: rms(x) * m.w.half().float(), [X], "rms_norm", EVALUATED, {"w": W}
    ),
    case("unsqueeze", lambda m, x: rms(x) * m.w[None], [X], "rms_norm", EVALUATED, {"w": W}),
    case("view", lambda m, x: rms(x) * m.w.view(-1), [X], "rms_norm", EVALUATED,
         {"w": weight(4, 4)}),
    case("expand", lambda m, x: rms(x) * (1 + m.w)[None].expand(T, D), [X], "rms_norm", EVALUATED,
         {"w": W}),
    case("product", lambda m, x: rms(x) * (m.w * m.v), [X], "rms_norm", EVALUATED,
         {"w": W, "v": weight(D, seed=2)}),
    case("merged", lambda m, x: rms(x) * (m.w + m.a @ m.b), [X], "rms_norm", EVALUATED,
         {"w": W, "a": weight(4), "b": weight(4, D)}),
    case("literal", lambda m, x: rms(x) * torch.tensor([1.0, 2.0] * 8), [X], "rms_norm", EVALUATED),
    case("integers", lambda m, x: rms(x) * torch.arange(D), [X], "rms_norm", EVALUATED),
    case("integer_parameter", lambda m, x: rms(x) * m.w, [X], "rms_norm", EVALUATED,
         {"w": nn.Parameter(torch.arange(D), requires_grad=False)}),
    case("row_11d", lambda m, x: rms(x) * m.w, [X], "rms_norm", FOLDED, {"w": weight(1, 1, D)}),
    case("two_products", lambda m, x: (lambda n: (n * m.w, n * m.v))(rms(x)), [X],
         "rms_norm rms_norm", FOLDED, {"w": W, "v": weight(D, seed=2)}),
    case("shared", lambda m, x: rms(rms(x) * m.w) * m.w, [X], "rms_norm rms_norm",
         [("rms_norm", FOLDED)] * 2, {"w": W}),
    case("tied", lambda m, i, x: rms(m.e(i) + x) * m.e.weight[2],
         [torch.tensor([[0, 1, 2], [3, 4, 0]]), X], "embedding add rms_norm", EVALUATED,
         {"e": nn.Embedding(5, D)}),
    case("tied_whole", lambda m, i, x: rms(m.e(i) + x) * m.e.weight,
         [torch.zeros(B, T, dtype=torch.long), X], "embedding add rms_norm", FOLDED,
         {"e": nn.Embedding(1, D)}),
    case("rank_1", lambda m, x: rms(x) * m.w, [rand(D)], "rms_norm", FOLDED, {"w": W}),
    case("rank_2", lambda m, x: rms(x) * m.w, [rand(T, D)], "rms_norm", FOLDED, {"w": W}),
    case("rank_4", lambda m, x: rms(x) * m.w, [rand(1, B, T, D)], "rms_norm", FOLDED, {"w": W}),
    case("rank_5", lambda m, x: rms(x) * m.w, [rand(1, B, 2, T, D)],
         "view_copy rms_norm view_copy", FOLDED, {"w": W}),
    case("odd", lambda m, x: rms(x) * m.w, [rand(T, 5)], "rms_norm", FOLDED, {"w": weight(5)}),
    case("dynamic", lambda m, x: rms(x) * m.w, [X], "rms_norm", FOLDED, {"w": W},
         dynamic=_ONE_DYNAMIC),
]  # fmt: skip

OTHER_CONSTANT: list[Case] = [
    case(name, lambda m, x: rms(x) * m.w, [X], "prepack rms_norm mul", UNIT, {"w": weight(*shape)},
         reason=reason)
    for name, shape, reason in (
        ("constant_td", (T, D), "float32[3, 16], not one row of 16"),
        ("constant_b1d", (B, 1, D), "float32[2, 1, 16], not one row of 16"),
        ("constant_t1", (T, 1), "not one row of 16"),
        ("constant_1", (1,), "not one row of 16"),
        ("constant_scalar", (), "not one row of 16"),
        ("up_rank", (1, 1, 1, D), "gives the product more dims"),
        ("up_batch", (2, 1, 1, D), "not one row of 16"),
    )
]  # fmt: skip
OTHER_CONSTANT += [
    case("up_rows", lambda m, x: rms(x) * m.w, [rand(2, 1, D)], "prepack rms_norm mul", UNIT,
         {"w": weight(4, D)}),
    case("number", lambda m, x: rms(x) * 0.5, [X], "prepack rms_norm mul", UNIT),
    case("computed_td", lambda m, x: rms(x) * (1 + m.w), [X], "prepack rms_norm mul", UNIT,
         {"w": weight(T, D)}),
    case("bare", lambda m, x: rms(x), [X], "rms_norm", UNIT, reason="nothing multiplies"),
    case("other_users", lambda m, x: (lambda n: (n * m.w, n + 1))(rms(x)), [X],
         "prepack prepack rms_norm mul add", UNIT, {"w": W}, reason="other users too"),
]  # fmt: skip

RUNTIME: list[Case] = [
    case("runtime_d", lambda m, x, s: rms(x) * s, [X, rand(D)], "rms_norm mul", UNIT,
         reason="from input `inputs_1`"),
    case("runtime_11d", lambda m, x, s: rms(x) * s, [X, rand(1, 1, D)], "rms_norm mul", UNIT),
    case("runtime_left", lambda m, x, s: s * rms(x), [X, rand(D)], "rms_norm mul", UNIT),
    case("runtime_b1d", lambda m, x, s: rms(x) * (1 + s), [X, rand(B, 1, D)],
         "prepack rms_norm add mul", UNIT),
    case("runtime_t1", lambda m, x, s: rms(x) * s, [rand(T, 5), rand(T, 1)], "rms_norm mul", UNIT),
    case("adaln", lambda m, x, s, b: rms(x) * (1 + s) + b, [X, rand(B, 1, D), rand(B, 1, D)],
         "prepack rms_norm add mul add", UNIT),
    case("gated", lambda m, x, z: rms(x) * functional.silu(z), [X, rand(B, T, D)],
         "rms_norm sigmoid mul mul", UNIT),
    case("gated_residual", lambda m, x, g: x + g * m.f(rms(x) * m.w), [X, rand(B, 1, D)],
         "rms_norm view_copy linear view_copy mul add", FOLDED, {"w": W, "f": nn.Linear(D, D)}),
    case("norm_by_norm", lambda m, x, y: rms(x) * rms(y), [X, rand(B, T, D, seed=3)],
         "rms_norm rms_norm mul", [("rms_norm", UNIT)] * 2),
    case("norm_by_input", lambda m, x: rms(x) * x, [X], "rms_norm mul", UNIT),
    case("runtime_integers", lambda m, x, s: rms(x) * s, [X, torch.arange(D, dtype=torch.int32)],
         "rms_norm dim_order_ops._to_dim_order_copy clone mul", UNIT),
    case("dynamic_scale", lambda m, x, s: rms(x) * (1 + s), [X, rand(B, T, D)],
         "prepack rms_norm add mul", UNIT, dynamic=_TWO_DYNAMIC),
]  # fmt: skip


def _form(name: str, forward: object, form: str, **parts: object) -> Case:
    made = case(name, forward, [X], "rms_norm", FOLDED, {"w": W, **parts})  # type: ignore[arg-type]
    made.reason = f"form:{form}"
    return made


def _square(x: torch.Tensor, dim: int = 2) -> torch.Tensor:
    return (x**2).mean(dim, keepdim=True)


FORMS: list[Case] = [
    _form("sqrt", lambda m, x: x / torch.sqrt(_square(x) + 1e-5) * m.w, "x/sqrt(v)"),
    _form("root_power", lambda m, x: x / (_square(x) + 1e-5).pow(0.5) * m.w, "x/sqrt(v)"),
    _form("power", lambda m, x: x * (x * x).mean(2, True).add(1e-5).pow(-0.5) * m.w, "x*v**-0.5"),
    _form(
        "reciprocal",
        lambda m, x: x * torch.reciprocal(torch.sqrt(_square(x) + 1e-5)) * m.w,
        "x*reciprocal(sqrt(v))",
    ),
    _form("one_over", lambda m, x: x * (1 / torch.sqrt(_square(x) + 1e-5)) * m.w, "x*(1/sqrt(v))"),
    _form("root_left", lambda m, x: torch.rsqrt(_square(x) + 1e-5) * x * m.w, "x*rsqrt(v)"),
    _form(
        "no_keepdim",
        lambda m, x: x * torch.rsqrt((x**2).mean(-1) + 1e-5).unsqueeze(-1) * m.w,
        "x*rsqrt(v)",
    ),
    _form("eps_left", lambda m, x: x * torch.rsqrt(1e-5 + _square(x)) * m.w, "x*rsqrt(v)"),
    _form("no_eps", lambda m, x: x * torch.rsqrt(_square(x)) * m.w, "x*rsqrt(v)"),
    _form(
        "eps_parameter",
        lambda m, x: x * torch.rsqrt(_square(x, -1) + m.e) * m.w,
        "x*rsqrt(v)",
        e=nn.Parameter(torch.tensor(1e-2)),
    ),
    _form(
        "eps_one_element",
        lambda m, x: x * torch.rsqrt(_square(x, -1) + m.e) * m.w,
        "x*rsqrt(v)",
        e=nn.Parameter(torch.tensor([1e-2])),
    ),
    _form(
        "eps_alpha",
        lambda m, x: x * torch.rsqrt(torch.add(_square(x), 0.01, alpha=2)) * m.w,
        "x*rsqrt(v)",
    ),
]

TORCH: list[Case] = [
    case("f_rms_norm", lambda m, x: functional.rms_norm(x, (D,), m.w, 1e-5), [X], "rms_norm",
         FOLDED, {"w": W}),
    case("f_rms_norm_bare", lambda m, x: functional.rms_norm(x, (D,)), [X], "rms_norm", UNIT),
    case("f_rms_norm_runtime", lambda m, x, w: functional.rms_norm(x, (D,), w), [X, rand(D)],
         "rms_norm mul", UNIT),
    case("module", lambda m, x: m.n(x), [X], "rms_norm", FOLDED, {"n": nn.RMSNorm(D)}),
    case("module_no_affine", lambda m, x: m.n(x), [X], "rms_norm", UNIT,
         {"n": nn.RMSNorm(D, elementwise_affine=False)}),
    case("module_dims", lambda m, x: m.n(x), [X], "view_copy rms_norm view_copy", FOLDED,
         {"n": nn.RMSNorm((T, D))}),
    case("module_dims_dynamic", lambda m, x: m.n(x), [rand(B, T, 4, D)],
         "view_copy rms_norm view_copy", FOLDED, {"n": nn.RMSNorm((4, D))}, dynamic=_ONE_DYNAMIC),
]  # fmt: skip

HALVES: list[Case] = [
    case("half", lambda m, x: m.w * rms(x.float()).to(x.dtype), [BIG], "rms_norm", FOLDED,
         {"w": H}, tolerance=HALF),
    case("half_gemma", lambda m, x: (rms(x.float()) * (1.0 + m.w.float())).type_as(x), [BIG],
         "rms_norm", EVALUATED, {"w": H}, tolerance=HALF),
    case("half_module", lambda m, x: m.n(x), [BIG], "rms_norm", EVALUATED,
         {"n": nn.RMSNorm(D).half()}, tolerance=HALF),
    case("half_module_no_affine", lambda m, x: m.n(x), [BIG], "rms_norm", UNIT,
         {"n": nn.RMSNorm(D, elementwise_affine=False)}, tolerance=HALF),
    case("half_scale", lambda m, x, s: rms(x.float()).half() * (1 + s),
         [BIG, rand(B, 1, D, dtype=torch.float16)], "prepack rms_norm add mul", UNIT,
         tolerance=HALF),
    case("half_scale_float", lambda m, x, s: (rms(x.float()) * (1 + s)).half(),
         [BIG, rand(B, 1, D)],
         "prepack dim_order_ops._to_dim_order_copy rms_norm add mul "
         "dim_order_ops._to_dim_order_copy", UNIT, tolerance=HALF),
    case("half_t5", lambda m, x: (x * torch.rsqrt(
        x.to(torch.float32).pow(2).mean(-1, keepdim=True) + 1e-6)).to(torch.float16) * m.w,
        [BIG], "rms_norm", FOLDED, {"w": H}, tolerance=HALF),
    case("float_to_half", lambda m, x: rms(x).half() * m.w, [X],
         "rms_norm dim_order_ops._to_dim_order_copy", FOLDED, {"w": H}, tolerance=HALF),
    case("half_one_sided", lambda m, x: (x * torch.rsqrt(
        x.float().pow(2).mean(-1, keepdim=True) + 1e-6).half()) * m.w, [BIG],
        "prepack prepack prepack prepack dim_order_ops._to_dim_order_copy mul mul mean.dim mul add "
        "rsqrt dim_order_ops._to_dim_order_copy mul mul",
        [("rms_norm", UNFUSED), ("half_mean", "rewritten")], {"w": H}, tolerance=HALF,
        reason="cast up for the mean only"),
]  # fmt: skip

UNFUSABLE: list[Case] = [
    case("eps_vector", lambda m, x: x * torch.rsqrt(_square(x) + m.e) * m.w, [X],
         "prepack prepack pow.Tensor_Scalar mean.dim add rsqrt mul mul", UNFUSED,
         {"w": W, "e": nn.Parameter(rand(D).abs())}, reason="not one number"),
    case("eps_runtime", lambda m, x, e: x * torch.rsqrt(_square(x) + e) * m.w,
         [X, torch.tensor(1e-2)], "prepack pow.Tensor_Scalar mean.dim add rsqrt mul mul", UNFUSED,
         {"w": W}, reason="eps `inputs_1` is a run-time value"),
    case("inner_value_used", lambda m, x: (lambda r: (x * r * m.w, r + 1))(
        torch.rsqrt(_square(x) + 1e-6)), [X],
        "prepack prepack prepack pow.Tensor_Scalar mean.dim add rsqrt mul mul add", UNFUSED,
        {"w": W}, reason="uses `aten.rsqrt.default` inside the norm"),
    case("middle_dim", lambda m, x: x * torch.rsqrt(_square(x, 1) + 1e-6), [X],
         "prepack pow.Tensor_Scalar mean.dim add rsqrt mul", []),
    case("other_square", lambda m, x, y: x * torch.rsqrt(_square(y) + 1e-6), [X, rand(B, T, D)],
         "prepack pow.Tensor_Scalar mean.dim add rsqrt mul", []),
    case("cube", lambda m, x: x * torch.rsqrt((x**4).mean(-1, keepdim=True) + 1e-6), [X],
         "prepack pow.Tensor_Scalar mean.dim add rsqrt mul", []),
]  # fmt: skip


class _WrittenWeight(nn.Module):
    """The weight is a buffer that each call writes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", rand(D, seed=5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = rms(x) * self.w
        self.w.mul_(0.5)
        return out


WRITTEN = Case(
    "written_buffer",
    lambda: (_WrittenWeight(), (X,)),
    ["prepack rms_norm mul mul"],
    [("rms_norm", UNIT)],
    cpu=["aten::copy_"],
    reason="buffer `w`, which the program writes",
)

NORM_CASES: list[Case] = [
    *CONSTANT, *OTHER_CONSTANT, *RUNTIME, *FORMS, *TORCH, *HALVES, *UNFUSABLE,
]  # fmt: skip
