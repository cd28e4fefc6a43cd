# SPDX-License-Identifier: Apache-2.0
"""The builder itself: what it does with which weight, on and off, dynamic shapes, errors."""

from __future__ import annotations

import json

import pytest
import torch

from etvk_guard import runtime
from etvk_guard.runtime._delegate import current_builder
from etvk_guard.runtime._inputs import largest_error
from models import MODELS, rand

# What is built for each norm of a row, in order.
PATHS = {
    "leaf": {"fused_row": 1},
    "one_plus": {"fused_row": 1},
    "runtime_11d": {"fused_row": 1},
    "runtime_d": {"fused_row": 1},
    "runtime_b1d": {"fused_batch": 1},
    "runtime_btd": {"fused_full": 1},
    "gated": {"fused_full": 1},
    "constant_rows": {"fused_batch": 1},
    "constant_1": {"unit_then_ops": 1},
    "constant_up": {"unit_then_ops": 1},
    "shared": {"fused_row": 2},
    "buffer": {"fused_row": 1},
    "texture": {"fused_row": 1},
    "half_scale": {"fused_row": 1},
    "layer_norm": {"fused_row": 1},
    "layer_norm_bare": {"fused_row": 1},
    "layer_norm_runtime": {"fused_row": 1},
}


def sites():
    builder = current_builder()
    assert builder is not None
    return dict(builder.status().sites)


def built_by(path: str, guard: str = "builder"):
    """What is built for a file's norms, by path."""
    before = sites()
    runtime.load(path, guard).load_method("forward")
    return {key: n - before[key] for key, n in sites().items() if n != before[key]}


@pytest.mark.parametrize("name", PATHS)
def test_path(stock, name):
    assert built_by(stock(name)) == PATHS[name]


def test_off_builds_nothing(stock):
    assert built_by(stock("leaf"), "off") == {}
    assert built_by(stock("leaf"), "repair") == {}


def test_uninstall_and_install(stock):
    builder = current_builder()
    try:
        assert builder.uninstall() == "inactive"
        assert builder.uninstall() == "inactive"
        assert not any(builder.status().ops.values())
        with pytest.raises(runtime.RuntimeFailedError):
            runtime.load(stock("scale"), "off").load_method("forward")
    finally:
        assert builder.install() == "active"
    assert builder.install() == "active"
    assert all(builder.status().ops.values())
    assert built_by(stock("scale")) == {"fused_row": 1}


STATUS = """
import json
from etvk_guard import runtime
status = runtime.enable_vulkan()
print(json.dumps([status.available, status.guarded, status.builder.state]))
"""


def test_switched_off_by_the_environment(in_child):
    done = in_child(STATUS, ETVK_GUARD="off")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, False, "disabled"]
    assert "ETVK_GUARD=off" in done.stderr


def test_says_so_once(in_child):
    done = in_child(STATUS)
    assert json.loads(done.stdout) == [True, True, "active"]
    assert done.stderr.count("etvk-guard: our norm builders are in effect") == 1


@pytest.mark.parametrize("name", ["dynamic", "dynamic_row"])
def test_dynamic_shapes_resize(stock, name):
    """Grows, shrinks and repeats, in one loaded program."""
    model = MODELS[name]
    program = runtime.load(stock(name), "builder")
    x, s = model.inputs()
    module = model.make().eval()
    for length in (x.shape[1], 3, 7, 2, 2, x.shape[1], 5):
        shorter = rand(x.shape[0], length, x.shape[2])
        scale = rand(
            *(length if axis == 1 and s.shape[1] != 1 else n for axis, n in enumerate(s.shape))
        )
        (result,) = program.forward(shorter, scale)
        expected = module(shorter, scale)
        assert result.shape == expected.shape
        assert largest_error(result, expected) <= 1e-5, length


def test_numpy_in_numpy_out(stock):
    x, s = MODELS["scale"].inputs()
    (result,) = runtime.load(stock("scale")).forward(x.numpy(), s.numpy())
    assert largest_error(result, MODELS["scale"].make()(x, s)) <= 1e-5
    assert not isinstance(result, torch.Tensor)


def test_several_programs_at_once(stock):
    names = ["scale", "gated", "constant_rows", "layer_norm_runtime"]
    programs = {name: runtime.load(stock(name), "builder") for name in names}
    for _ in range(3):
        for name, program in programs.items():
            (result,) = program.forward(*MODELS[name].inputs())
            expected = MODELS[name].make().eval()(*MODELS[name].inputs())
            assert largest_error(result, expected.detach()) <= MODELS[name].tolerance
