# SPDX-License-Identifier: Apache-2.0
"""Group and batch norms, as stock lowers them, under the builder: unrepaired.

Each row says what the builder makes of it; eager torch says the numbers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from lowered import eager, lower_case, made_once
from lowering_cases import HALF, Case, case, rand
from test_builder import built_by
from torch.nn import functional

from etvk_guard import runtime
from etvk_guard.runtime._inputs import largest_error

C = 8
IMAGE, SCALE, SHIFT = rand(2, C, 5, 6), rand(C), rand(C, seed=2)
STATISTICS = {"mean": rand(C, seed=3), "var": rand(C, seed=4).abs() + 0.5}


def _group(x, weight=None, bias=None):
    return functional.group_norm(x, 4, weight, bias)


def _batch(m, x, weight=None, bias=None):
    return functional.batch_norm(x, m.mean, m.var, weight, bias)


def _row(name, function, inputs, **rest) -> Case:
    return case(name, function, inputs, "", [], rest.pop("parts", {}), **rest)


def _constants(*names: str):
    parts = {"w": SCALE, "b": SHIFT, **STATISTICS}
    return {name: torch.nn.Parameter(parts[name], requires_grad=False) for name in names}


STATS = _constants("mean", "var")
# What is built, and the case.
ROWS: list[tuple[str, Case]] = [
    ("stock", _row("group", lambda m, x: _group(x, m.w, m.b), [IMAGE], parts=_constants("w", "b"))),
    ("unit", _row("group_bare", lambda m, x: _group(x), [IMAGE])),
    ("unit_then_ops", _row("group_run_time", lambda m, x, w, b: _group(x, w * 2, b * 2),
                           [IMAGE, SCALE, SHIFT])),
    ("unit_then_ops", _row("group_weight", lambda m, x, w: _group(x, w * 2, m.b), [IMAGE, SCALE],
                           parts=_constants("b"))),
    ("unit_then_ops", _row("group_bias", lambda m, x, b: _group(x, m.w, b * 2), [IMAGE, SHIFT],
                           parts=_constants("w"))),
    ("unit_then_ops", _row("group_weight_only", lambda m, x, w: _group(x, w * 2), [IMAGE, SCALE])),
    ("unit_then_ops", _row("group_half", lambda m, x, w: _group(x, w * 2),
                           [IMAGE.half(), SCALE.half()], tolerance=HALF)),
    ("moved", _row("group_row", lambda m, x: _group(x, m.w, m.b), [rand(2, C, 9)],
                   parts=_constants("w", "b"))),
    ("unit_then_ops", _row("group_matrix", lambda m, x, w: _group(x, w * 2), [rand(3, C), SCALE])),
    ("unit_then_ops", _row("group_after_product", lambda m, x, w: _group(x @ x.mT, w * 2) + 1,
                           [rand(2, C, 5, 5), SCALE])),
    ("unit_then_ops", _row("group_dynamic", lambda m, x, w: _group(x, w * 2), [IMAGE, SCALE],
                           dynamic=(({2: torch.export.Dim("rows", max=5)}, None),))),
    ("stock", _row("batch", lambda m, x: _batch(m, x, m.w, m.b), [IMAGE],
                   parts=STATS | _constants("w", "b"))),
    ("unit", _row("batch_bare", lambda m, x: _batch(m, x), [IMAGE], parts=STATS)),
    ("unit_then_ops", _row("batch_run_time", lambda m, x, w, b: _batch(m, x, w * 2, b * 2),
                           [IMAGE, SCALE, SHIFT], parts=STATS)),
    ("unit_then_ops", _row("batch_weight", lambda m, x, w: _batch(m, x, w * 2, m.b),
                           [IMAGE, SCALE], parts=STATS | _constants("b"))),
    ("moved", _row("batch_row", lambda m, x: _batch(m, x, m.w, m.b), [rand(2, C, 9)],
                   parts=STATS | _constants("w", "b"))),
    ("moved", _row("batch_matrix", lambda m, x: _batch(m, x, m.w, m.b), [rand(3, C)],
                   parts=STATS | _constants("w", "b"))),
]  # fmt: skip
CASES = {row.name: (path, row) for path, row in ROWS}


def stock_program(row: Case, folder: Path) -> str:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    path = folder / f"channel-{row.name}.pte"
    return str(made_once(path, lambda: lower_case(row, VulkanPartitioner())))


@pytest.mark.parametrize("name", CASES)
def test_under_the_builder(name, tmp_path):
    path, row = CASES[name]
    program = stock_program(row, tmp_path)
    assert built_by(program) == {path: 1}
    results = runtime.load(program, "builder").forward(*row.make()[1])
    assert max(map(largest_error, results, eager(row))) <= row.tolerance


def test_resizes(tmp_path):
    _, row = CASES["group_dynamic"]
    program = runtime.load(stock_program(row, tmp_path), "builder")
    module, (_, scale) = row.make()
    for rows in (5, 3, 2, 5):
        image = rand(2, C, rows, 6)
        (result,) = program.forward(image, scale)
        assert largest_error(result, module(image, scale)) <= row.tolerance


def test_run_time_statistics_are_an_error(tmp_path):
    row = _row("batch_statistics", lambda m, x, v: functional.batch_norm(x, m.mean, v * 2),
               [IMAGE, STATISTICS["var"]], parts=_constants("mean"))  # fmt: skip
    program = stock_program(row, tmp_path)
    with pytest.raises(runtime.RuntimeFailedError, match="running variance is no constant"):
        runtime.load(program, "builder").load_method("forward")
