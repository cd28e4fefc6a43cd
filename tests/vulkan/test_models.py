# SPDX-License-Identifier: Apache-2.0
"""Every row of the table of models on the real delegate, against eager torch.

Errors are relative to the largest value of eager's result; a row says what it may be: 1e-5 in
float32 and 2e-3 in half.
"""

from __future__ import annotations

import warnings

import pytest
import torch

from etvk_guard import pte, runtime
from etvk_guard.runtime._inputs import largest_error
from models import MODELS

NORM_CODES = {"EG101", "EG102", "EG103", "EG104", "EG105", "EG106", "EG107", "EG108"}
# Rows whose only faults are those of norms: what the builder and the repair are for.
NORMS = [name for name, model in MODELS.items() if set(model.codes) <= NORM_CODES]
OTHERS = [name for name in MODELS if name not in NORMS]
REPAIRED = [name for name in OTHERS if MODELS[name].repaired is not None]
CHANNEL_NORMS = [name for name in OTHERS if name.startswith(("group_norm", "batch_norm"))]
ENDS_THE_PROCESS = {"sum_of_numbers"}  # a division by zero, in stock's softmax
LEFT = [
    name
    for name in OTHERS
    if MODELS[name].stock == "abort" and name not in {*CHANNEL_NORMS, *ENDS_THE_PROCESS}
]
WRONG = [name for name in MODELS if MODELS[name].stock == "wrong"]
ABORTING = [name for name in NORMS if MODELS[name].stock == "abort"]


def eager(name: str, method: str) -> list[torch.Tensor]:
    model = MODELS[name]
    make = model.make if method == "forward" else model.methods[method]
    with torch.no_grad():
        result = make().eval()(*model.inputs())
    return list(result) if isinstance(result, tuple | list) else [result]


def errors_of(name: str, program: runtime.LoadedProgram) -> dict[str, float]:
    """By method, the largest error of its outputs."""
    found = {}
    for method in ("forward", *MODELS[name].methods):
        results = program.run(method, *MODELS[name].inputs())
        expected = eager(name, method)
        assert len(results) == len(expected)
        assert [r.dtype for r in results] == [e.dtype for e in expected]
        found[method] = max(map(largest_error, results, expected))
    return found


def assert_right(name: str, program: runtime.LoadedProgram) -> None:
    assert program.runs_on == "vulkan"
    errors = errors_of(name, program)
    assert max(errors.values()) <= MODELS[name].tolerance, errors


@pytest.mark.parametrize("name", NORMS)
def test_stock_file_under_the_builder(stock, name):
    assert_right(name, runtime.load(stock(name), "builder"))


@pytest.mark.parametrize("name", NORMS)
def test_repaired_file_on_stock(stock, name):
    assert_right(name, runtime.load(stock(name), "repair"))


@pytest.mark.parametrize("name", WRONG)
def test_stock_is_silently_wrong(stock, name):
    """The fault is real, and the tolerance tells right from wrong."""
    errors = errors_of(name, runtime.load(stock(name), "off"))
    assert max(errors.values()) > 10 * MODELS[name].tolerance


@pytest.mark.parametrize("name", ABORTING)
def test_stock_throws(stock, name):
    program = runtime.load(stock(name), "off")

    def load_all() -> None:
        for method in program.methods:
            program.load_method(method)

    with pytest.raises(runtime.RuntimeFailedError, match="EG507"):
        load_all()


@pytest.mark.parametrize("name", REPAIRED)
def test_repaired_ops_on_stock(stock, name):
    assert_right(name, runtime.load(stock(name), "repair"))


@pytest.mark.parametrize("name", CHANNEL_NORMS)
def test_norms_over_channels_under_the_builder(stock, name):
    assert_right(name, runtime.load(stock(name), "builder"))


@pytest.mark.parametrize("name", LEFT)
def test_what_is_no_norm_stays_as_it_is(stock, name):
    """Other ops keep their fault: the builder is for norms alone."""
    with pytest.raises(runtime.RuntimeFailedError, match="EG507"):
        runtime.load(stock(name), "builder").load_method("forward")


def lower_guarded(name: str, target: str) -> bytes:
    from executorch.exir import to_edge_transform_and_lower

    from etvk_guard.lowering import GuardedVulkanPartitioner
    from exporting import _options

    model = MODELS[name]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        makers = {"forward": model.make, **model.methods}
        programs = {
            method: torch.export.export(make().eval(), model.inputs(), dynamic_shapes=model.dynamic)
            for method, make in makers.items()
        }
        partitioner = GuardedVulkanPartitioner(_options(model), runtime=target)
        lowered = to_edge_transform_and_lower(programs, partitioner=[partitioner])
        return bytes(lowered.to_executorch().buffer)


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMS)
def test_guarded_lowering_on_stock(name):
    program = lower_guarded(name, "stock")
    assert pte.check(program).clean
    assert_right(name, runtime.load(program, "off"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scale", "gated", "runtime_b1d", "one_plus", "half_scale"])
def test_lowering_for_the_builder(name):
    """Lowered for a guarded runtime, a run-time multiplier stays in the norm: one dispatch."""
    program = lower_guarded(name, "guarded")
    assert_right(name, runtime.load(program, "builder"))
