# SPDX-License-Identifier: Apache-2.0
"""The program around the graphs: delegates between CPU operators, methods, shapes, state."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from etvk_guard import open_program, reference

EPS = 1e-6


def rand(*shape: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.rand(*shape, generator=generator) * 2 - 1


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


class Mixed(nn.Module):
    """Three delegates, with CPU operators between them that take a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.divisor = nn.Parameter(rand(8) + 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.erf(self.linear(x) + x)
        z = torch.fmod(F.silu(y) * 3, self.divisor)
        return torch.softmax(z, -1), z


def test_delegates_and_cpu_operators(lower: Any, close: Any) -> None:
    torch.manual_seed(1)
    network, x = Mixed().eval(), rand(2, 5, 8)
    file = lower("mixed", network, (x,))
    method = open_program(file).methods[0]
    assert len(method.delegates) == 3
    assert {name for name, _ in method.operators} == {"aten::erf", "aten::fmod"}
    with torch.no_grad():
        wanted = network(x)
    for result, expected in zip(reference.run(file, [x]), wanted, strict=True):
        close(result, expected, 1e-5)


def test_methods(lower: Any, close: Any) -> None:
    x = rand(3, 8)
    functions = {"forward": lambda x: torch.tanh(x) * 2, "encode": lambda x: torch.exp(x).mean(-1)}
    modules = {name: Function(function) for name, function in functions.items()}
    file = lower("methods", modules, (x,))
    for name, function in functions.items():
        close(reference.run(file, [x], method=name)[0], function(x), 1e-5)


class Dynamic(nn.Module):
    """A norm, a projection and a reshape to a length that is an input's size."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(8) + 1)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * self.weight
        y = self.linear(y).reshape(1, x.shape[1], 2, 4).transpose(1, 2)
        scores = torch.softmax(y @ y.transpose(-2, -1), -1)
        return (scores @ y).transpose(1, 2).reshape(1, x.shape[1], 8)


@pytest.mark.parametrize("length", [2, 5, 16])
def test_dynamic_length(length: int, lower: Any, close: Any) -> None:
    torch.manual_seed(1)
    network = Dynamic().eval()
    dynamic = ({1: torch.export.Dim("length", min=2, max=16)},)
    file = lower("dynamic", network, (rand(1, 6, 8),), None, dynamic)
    x = rand(1, length, 8)
    with torch.no_grad():
        close(reference.run(file, [x])[0], network(x), 1e-5)


def test_length_over_its_bound_is_an_error(lower: Any) -> None:
    dynamic = ({1: torch.export.Dim("length", min=2, max=16)},)
    file = lower("dynamic", Dynamic(), (rand(1, 6, 8),), None, dynamic)
    with pytest.raises(reference.InterpreterError) as caught:
        reference.run(file, [rand(1, 17, 8)])
    assert caught.value.code == "EG403"


def test_integers_are_narrowed_inside_and_widened_outside(lower: Any) -> None:
    ids = torch.tensor([[1, 2, 3], [70000, 5, 6]])
    file = lower("integers", Function(lambda i: (i + i * 3, i.permute(1, 0))), (ids,))
    results = reference.run(file, [ids])
    assert [result.dtype for result in results] == [torch.int64, torch.int64]
    assert torch.equal(results[0], ids * 4)
    assert torch.equal(results[1], ids.T)


class Remembering(nn.Module):
    """A buffer that a CPU operator updates: its last value is the next run's."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2, 8))

    def forward(self, x: Tensor) -> Tensor:
        total = torch.erf(self.seen) + x
        self.seen.copy_(total)
        return total * 2


def test_buffers_last_from_run_to_run(lower: Any, close: Any) -> None:
    x = rand(2, 8)
    loaded = reference.load(lower("buffer", Remembering(), (x,)))
    seen = torch.zeros(2, 8)
    for _ in range(3):
        seen = torch.erf(seen) + x
        close(loaded.run([x])[0], seen * 2, 1e-5)


def test_inputs_are_left_alone(lower: Any) -> None:
    x = rand(2, 8)
    before = x.clone()
    file = lower("buffer", Remembering(), (x,))
    reference.run(file, [x])[0].zero_()
    assert torch.equal(x, before)


def test_sources(lower: Any, tmp_path: Path) -> None:
    x = rand(3, 8)
    file = lower("source", Function(lambda x: torch.tanh(x) * 2), (x,))
    path = tmp_path / "model.pte"
    path.write_bytes(file)
    wanted = reference.run(file, [x])[0]
    for source in (path, str(path), bytearray(file), memoryview(file), io.BytesIO(file)):
        assert torch.equal(reference.run(source, [x])[0], wanted)


def test_several_outputs_one_of_them_an_input(lower: Any) -> None:
    x = rand(3, 8)
    file = lower("outputs", Function(lambda x: (x, torch.neg(x))), (x,))
    results = reference.run(file, [x])
    assert torch.equal(results[0], x)
    assert torch.equal(results[1], -x)


def test_a_branch_runs_one_side(lower: Any, close: Any) -> None:
    def branch(flag: Tensor, x: Tensor) -> Tensor:
        (y,) = torch.cond(flag, lambda x: (torch.sin(x),), lambda x: (torch.erf(x) * 2,), (x,))
        return torch.tanh(y)

    x = rand(3, 8)
    file = lower("branch", Function(branch), (torch.tensor(True), x))
    kinds = {instruction.kind for instruction in open_program(file).methods[0].instructions}
    assert {"jump_false", "move"} <= kinds
    close(reference.run(file, [torch.tensor(True), x])[0], torch.tanh(torch.sin(x)), 1e-5)
    close(reference.run(file, [torch.tensor(False), x])[0], torch.tanh(torch.erf(x) * 2), 1e-5)


class Counting(nn.Module):
    """Adds a buffer, and then one to the buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.arange(1.0, 9.0))

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.count
        self.count.add_(1.0)
        return y


def test_a_written_buffer_starts_with_the_models_value(close: Any) -> None:
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    x = rand(2, 8)
    passes = [InitializedMutableBufferPass(["count"])]
    edge = to_edge(torch.export.export(Counting(), (x,)))
    made = edge.to_executorch(ExecutorchBackendConfig(passes=passes))
    method, network = reference.load(bytes(made.buffer)), Counting()
    for _ in range(3):
        close(method.run([x])[0], network(x), 1e-5)
