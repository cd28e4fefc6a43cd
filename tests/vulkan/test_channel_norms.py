# SPDX-License-Identifier: Apache-2.0
"""Group and batch norms, as stock lowers them, under the builder: unrepaired.

Each row says what the builder makes of it; eager torch says the numbers.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from unittest import mock

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


def _batch_of(x, mean, var, weight=None, bias=None):
    return functional.batch_norm(x, mean, var, weight, bias, eps=0.25)


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
    ("unit_then_ops", _row("group_inputs", lambda m, x, w, b: _group(x, w, b),
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
    ("unit_then_ops", _row("batch_variance", lambda m, x, v: _batch_of(x, m.mean, v * 2),
                           [IMAGE, STATISTICS["var"]], parts=_constants("mean"))),
    ("unit_then_ops", _row("batch_statistics", lambda m, x, n, v, w: _batch_of(x, n * 2, v, w, m.b),
                           [rand(2, C, 9), *STATISTICS.values(), SCALE], parts=_constants("b"))),
]  # fmt: skip
CASES = {row.name: (path, row) for path, row in ROWS}

BUFFER, TEXTURE = 0, 1  # VkStorageType
WIDTH, HEIGHT, CHANNELS = 0, 1, 2  # VkMemoryLayout
# As no exporter writes it: what is built, the case, the representations of some arguments of the
# norm (-1 is the result), the sizes of others.
Stored = tuple[int, int]
STORED: dict[str, tuple[str, Case, dict[int, Stored], dict[int, list[int]]]] = {
    "x_buffer": ("moved", CASES["group"][1], {0: (BUFFER, WIDTH)}, {}),
    "both_buffers": ("moved", CASES["group"][1], {0: (BUFFER, WIDTH), -1: (BUFFER, WIDTH)}, {}),
    "buffer_to_texture": ("moved", CASES["batch"][1], {0: (BUFFER, CHANNELS), -1: (TEXTURE, WIDTH)},
                          {}),
    "bare_height_packed": ("unit", CASES["batch_bare"][1],
                           {0: (TEXTURE, HEIGHT), -1: (TEXTURE, HEIGHT)}, {}),
    "row_buffers": ("moved", CASES["batch_row"][1], {0: (BUFFER, WIDTH), -1: (BUFFER, WIDTH)}, {}),
    "matrix_buffer": ("moved", CASES["batch_matrix"][1], {0: (BUFFER, WIDTH)}, {}),
    "operands_buffers": ("unit_then_ops", CASES["group_inputs"][1],
                         {1: (BUFFER, WIDTH), 2: (BUFFER, WIDTH)}, {}),
    "all_buffers": ("unit_then_ops", CASES["group_inputs"][1],
                    dict.fromkeys((0, 1, 2, -1), (BUFFER, WIDTH)), {}),
    "half_buffers": ("unit_then_ops", CASES["group_half"][1],
                     dict.fromkeys((0, -1), (BUFFER, WIDTH)), {}),
    "statistics_buffers": ("unit_then_ops", CASES["batch_statistics"][1],
                           dict.fromkeys((0, 4, -1), (BUFFER, WIDTH)), {}),
    "weight_row": ("unit_then_ops", CASES["group"][1], {}, {1: [1, C]}),
    "weight_column": ("unit_then_ops", CASES["batch"][1], {}, {1: [C, 1, 1], 2: [1, C, 1, 1]}),
    "mean_row": ("unit_then_ops", CASES["batch"][1], {}, {3: [1, C]}),
}  # fmt: skip


def _stored(stored: dict[int, Stored], sizes: dict[int, list[int]]):
    """While a program is lowered: writes the norm's arguments in other ways."""
    from executorch.backends.vulkan import vulkan_preprocess
    from executorch.backends.vulkan.serialization import vulkan_graph_schema as schema

    write = vulkan_preprocess.serialize_vulkan_graph

    def rewrite(graph, *rest):
        (norm,) = (op for op in graph.chain if "norm" in op.name)

        def tensor(position: int):
            value = graph.values[norm.args[position]].value
            is_list = isinstance(value, schema.ValueList)
            return graph.values[value.items[0]].value if is_list else value

        for position, (storage, layout) in stored.items():
            tensor(position).storage_type = schema.VkStorageType(storage)
            tensor(position).memory_layout = schema.VkMemoryLayout(layout)
        for position, dims in sizes.items():
            tensor(position).dims = dims
        return write(graph, *rest)

    return mock.patch.object(vulkan_preprocess, "serialize_vulkan_graph", rewrite)


def stock_program(row: Case, folder: Path, written=None) -> str:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    with written or nullcontext():
        path = folder / f"channel-{row.name}.pte"
        return str(made_once(path, lambda: lower_case(row, VulkanPartitioner())))


def assert_built(path: str, row: Case, program: str) -> None:
    assert built_by(program) == {path: 1}
    results = runtime.load(program, "builder").forward(*row.make()[1])
    assert max(map(largest_error, results, eager(row))) <= row.tolerance


@pytest.mark.parametrize("name", CASES)
def test_under_the_builder(name, tmp_path):
    path, row = CASES[name]
    assert_built(path, row, stock_program(row, tmp_path))


@pytest.mark.parametrize("name", STORED)
def test_stored_otherwise(name, tmp_path):
    path, row, stored, sizes = STORED[name]
    assert_built(path, row, stock_program(row, tmp_path, _stored(stored, sizes)))


@pytest.mark.parametrize("stored", [None, BUFFER])
def test_resizes(stored, tmp_path):
    _, row = CASES["group_dynamic"]
    written = None if stored is None else _stored({0: (stored, WIDTH), -1: (stored, WIDTH)}, {})
    program = runtime.load(stock_program(row, tmp_path, written), "builder")
    module, (_, scale) = row.make()
    for rows in (5, 3, 2, 5):
        image = rand(2, C, rows, 6)
        (result,) = program.forward(image, scale)
        assert largest_error(result, module(image, scale)) <= row.tolerance


def test_half_statistics_are_an_error(tmp_path):
    halves = (IMAGE.half(), *(part.half() for part in STATISTICS.values()))
    row = _row("batch_half", lambda m, x, mean, var: _batch_of(x, mean, var * 2), halves)
    program = stock_program(row, tmp_path)
    with pytest.raises(runtime.RuntimeFailedError, match="running_mean is a run-time value"):
        runtime.load(program, "builder").load_method("forward")
