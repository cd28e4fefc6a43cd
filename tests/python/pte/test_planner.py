# SPDX-License-Identifier: Apache-2.0
"""The planner's Python face; its table of cases is in tests/cpp/pte/plan_test.cpp."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from etvk_guard.pte import TensorDesc, plan_norm

BUFFER, TEXTURE, WIDTH, CHANNELS, FLOAT, HALF = 0, 1, 0, 2, 5, 4

X = TensorDesc("runtime", (2, 8, 64), FLOAT, TEXTURE, WIDTH)
ROW = replace(X, dims=(1, 1, 64))
BATCH = replace(X, dims=(2, 1, 64))
LEAF = TensorDesc("constant", (64,), FLOAT)
NONE = TensorDesc()

CASES: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("a leaf", {"weight": LEAF}, ("stock", "legal")),
    ("run-time row", {"weight": ROW}, ("unit-then-ops", "weight-runtime")),
    ("other shape", {"weight": replace(LEAF, dims=(8, 64))}, ("unit-then-ops", "weight-shape")),
    ("missing", {"weight": NONE}, ("unit", "weight-missing")),
    ("row, builder", {"weight": ROW, "target": "builder"}, ("fused-row", "weight-runtime")),
    ("batch, builder", {"weight": BATCH, "target": "builder"}, ("fused-batch", "weight-runtime")),
    ("full, builder", {"weight": X, "target": "builder"}, ("fused-full", "weight-runtime")),
]


@pytest.mark.parametrize(("what", "given", "expected"), CASES, ids=[case[0] for case in CASES])
def test_form_and_reason(what: str, given: dict[str, Any], expected: tuple[str, str]) -> None:
    plan = plan_norm("rms", X, out=X, **{"target": "file", **given})
    assert (plan.form, plan.reason) == expected
    assert plan.unit_weight == plan.form.startswith("unit")
    assert (plan.multiply is not None) == (plan.form not in ("stock", "unit"))


def test_steps() -> None:
    weight = TensorDesc("runtime", (2, 1, 64), HALF, BUFFER, WIDTH)
    plan = plan_norm("rms", X, weight, X, target="file")
    steps = plan.multiply
    assert steps is not None
    assert (steps.cast, steps.relayout, steps.prepack) == (True, True, False)
    assert (steps.dtype, steps.storage, steps.layout) == (FLOAT, TEXTURE, WIDTH)
    assert (steps.rows, steps.shared_rows) == ("batch", 8)
    assert (plan.norm_dtype, plan.norm_dims, plan.multiply_dims) == (FLOAT, X.dims, X.dims)
    assert "[2, 1, 64]" in plan.message


def test_layer_norm_without_affine() -> None:
    plan = plan_norm("layer", X, NONE, X, NONE, target="file")
    assert (plan.form, plan.unit_weight, plan.zero_bias) == ("unit", True, True)
    assert plan.add is None


def test_layer_norm_with_a_run_time_bias() -> None:
    plan = plan_norm("layer", X, LEAF, X, ROW, target="file")
    assert plan.form == "unit-then-ops"
    assert plan.problem == "bias-runtime"
    assert plan.add is not None


IMAGE = TensorDesc("runtime", (2, 6, 5, 7), FLOAT, TEXTURE, CHANNELS)
COLUMN = TensorDesc("constant", (6,), FLOAT)
GIVEN = TensorDesc("runtime", (6,), FLOAT, TEXTURE, WIDTH)
IN_BUFFER = replace(IMAGE, storage=BUFFER, layout=WIDTH)

CHANNEL_CASES: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("legal", {}, ("stock", "stock")),
    ("bare", {"weight": NONE, "bias": NONE}, ("unit", "unit")),
    ("run-time", {"weight": GIVEN}, ("unit-then-ops", "unit-then-ops")),
    ("a constant row", {"weight": replace(COLUMN, dims=(1, 6))}, ("refused", "unit-then-ops")),
    ("in a buffer", {"x": IN_BUFFER, "weight": GIVEN}, ("refused", "unit-then-ops")),
    ("to a buffer", {"out": IN_BUFFER, "weight": NONE}, ("refused", "unit-then-ops")),
    ("statistics", {"variance": GIVEN}, ("unit-then-ops", "unit-then-ops")),
    ("a row", {"mean": replace(GIVEN, dims=(1, 6))}, ("refused", "unit-then-ops")),
    ("half", {"x": replace(IMAGE, dtype=HALF), "mean": GIVEN}, ("refused", "refused")),
]


@pytest.mark.parametrize(
    ("what", "given", "forms"), CHANNEL_CASES, ids=[case[0] for case in CHANNEL_CASES]
)
def test_channels(what: str, given: dict[str, Any], forms: tuple[str, str]) -> None:
    legal = dict.fromkeys(("weight", "bias", "mean", "variance"), COLUMN)
    site = {"x": IMAGE, "out": IMAGE, **legal, **given}
    file, builder = (plan_norm("batch", **site, target=target) for target in ("file", "builder"))
    assert (file.form, builder.form) == forms
    assert builder.relayout_x == (what == "in a buffer")
    assert builder.relayout_out == (what == "to a buffer")
    assert not file.relayout_x
    assert builder.computed == (what in ("statistics", "a row", "half"))


@pytest.mark.parametrize(
    ("kind", "given", "match"),
    [
        ("instance", {}, "unknown norm 'instance'"),
        ("rms", {"target": "device"}, "unknown target 'device'"),
        ("rms", {"weight": TensorDesc("variable")}, "unknown kind 'variable'"),  # type: ignore[arg-type]
    ],
)
def test_unknown_names(kind: Any, given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        plan_norm(kind, X, **{"weight": LEAF, "out": X, **given})


@pytest.mark.parametrize("dims", [(), (0,), (-1, 64), (2**62, 2**62), (1,) * 30])
def test_any_numbers_give_a_plan(dims: tuple[int, ...]) -> None:
    wild = TensorDesc("runtime", dims, -7, 200, 99)
    for target in ("lowering", "file", "builder"):
        for kind in ("rms", "batch"):
            assert plan_norm(kind, wild, wild, wild, target=target).form == "refused"  # type: ignore[arg-type]
