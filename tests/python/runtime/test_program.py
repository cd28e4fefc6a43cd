# SPDX-License-Identifier: Apache-2.0
"""Programs where there is no delegate: they run in the reference interpreter, and it is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from etvk_guard import EtvkGuardError, runtime
from etvk_guard.runtime import _program
from models import MODELS

Stock = Callable[[str], Path]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ETVK_GUARD_BACKEND", "ETVK_GUARD_BUILDER"):
        monkeypatch.delenv(name, raising=False)


def load(path: Any, guard: Any = None) -> runtime.LoadedProgram:
    with pytest.warns(RuntimeWarning, match="no Vulkan delegate"):
        return runtime.load(path, guard)


@pytest.mark.parametrize("guard", ["builder", "repair", None])
@pytest.mark.parametrize("name", ["scale", "constant_rows"])
def test_guarded_programs_are_right(stock: Stock, name: str, guard: Any) -> None:
    program = load(stock(name), guard)
    assert program.runs_on == "reference"
    assert program.guard == (guard or "repair")
    assert program.methods == ("forward",)
    (result,) = program.forward(*MODELS[name].inputs())
    expected = MODELS[name].make().eval()(*MODELS[name].inputs())
    assert torch.allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_unguarded_programs_do_what_stock_does(stock: Stock) -> None:
    with pytest.raises(EtvkGuardError, match="EG101"):
        load(stock("scale"), "off").forward(*MODELS["scale"].inputs())
    (result,) = load(stock("constant_rows"), "off").forward(*MODELS["constant_rows"].inputs())
    expected = MODELS["constant_rows"].make().eval()(*MODELS["constant_rows"].inputs())
    assert not torch.allclose(result, expected, rtol=1e-2, atol=1e-2, equal_nan=True)


def test_bytes_and_files_alike(stock: Stock) -> None:
    inputs = MODELS["scale"].inputs()
    (of_file,) = load(stock("scale")).forward(*inputs)
    (of_bytes,) = load(stock("scale").read_bytes()).forward(*inputs)
    assert torch.equal(of_file, of_bytes)


def test_numpy_in_numpy_out(stock: Stock) -> None:
    program = load(stock("scale"))
    x, s = MODELS["scale"].inputs()
    (of_torch,) = program.forward(x, s)
    (of_numpy,) = program.forward(x.numpy(), s.numpy())
    (of_both,) = program.forward(x.numpy(), s)
    assert isinstance(of_numpy, np.ndarray)
    assert isinstance(of_both, torch.Tensor)
    assert np.array_equal(of_numpy, of_torch.numpy())


def test_values_need_not_be_contiguous(stock: Stock) -> None:
    program = load(stock("scale"))
    x, s = MODELS["scale"].inputs()
    (expected,) = program.forward(x, s)
    turned = x.transpose(0, 2).contiguous().transpose(0, 2)
    assert not turned.is_contiguous()
    (of_torch,) = program.forward(turned, s)
    (of_numpy,) = program.forward(turned.numpy(), s.numpy())
    assert torch.equal(of_torch, expected)
    assert np.array_equal(of_numpy, expected.numpy())


def test_every_method(stock: Stock) -> None:
    model = MODELS["methods"]
    program = load(stock("methods"))
    assert set(program.methods) == {"forward", *model.methods}
    for name, make in model.methods.items():
        (result,) = program.run(name, *model.inputs())
        assert torch.allclose(result, make().eval()(*model.inputs()), rtol=1e-5, atol=1e-5)
    with pytest.raises(runtime.RuntimeFailedError, match=r"EG506.*no method 'none'"):
        program.run("none")


def test_no_such_guard(stock: Stock) -> None:
    with pytest.raises(ValueError, match="builder, repair, off"):
        runtime.load(stock("scale"), "always")  # type: ignore[arg-type]


class FakeLib:
    """As portable_lib: a delegate that fails with words of its own."""

    class Verification:
        Minimal = 0

    def __init__(self, fails_at: str) -> None:
        self.fails_at = fails_at

    def _load_program(self, path: str, program_verification: int) -> FakeLib:
        return self.step("load", self)

    def num_methods(self) -> int:
        return 1

    def get_method_name(self, index: int) -> str:
        return "forward"

    def load_method(self, name: str) -> Callable[[Any], list[Any]]:
        return self.step("method", lambda inputs: self.step("run", list(inputs)))

    def step(self, name: str, value: Any) -> Any:
        if name == self.fails_at:
            raise RuntimeError(f"Exception raised from {name}")
        return value


@pytest.mark.parametrize("fails_at", ["load", "method", "run"])
def test_the_delegates_own_words(monkeypatch: pytest.MonkeyPatch, fails_at: str) -> None:
    monkeypatch.setattr(_program, "portable_lib", lambda: FakeLib(fails_at))
    monkeypatch.setattr(_program, "current_builder", lambda: None)
    with pytest.raises(
        runtime.RuntimeFailedError, match=f"EG507.*Exception raised from {fails_at}"
    ):
        _program._in_runtime("model.pte", "off", None).forward(torch.ones(1))


def test_the_builder_is_set_while_a_method_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards are a program's own, though the builder is the process'."""
    from contextlib import contextmanager

    asked: list[bool] = []

    class FakeBuilder:
        @contextmanager
        def set_to(self, active: bool) -> Any:
            asked.append(active)
            yield

    monkeypatch.setattr(_program, "portable_lib", lambda: FakeLib(""))
    monkeypatch.setattr(_program, "current_builder", FakeBuilder)
    for guard in ("builder", "off"):
        program = _program._in_runtime("model.pte", guard, None)  # type: ignore[arg-type]
        program.forward(torch.ones(1))
        program.forward(torch.ones(1))
    assert asked == [True, False]
