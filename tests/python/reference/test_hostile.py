# SPDX-License-Identifier: Apache-2.0
"""The interpreter on damaged files: a result or one of its errors, in little time, and no more."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import pytest
import torch

from crafted import INT, REAL, SMALL, graph, op, program, table, tensor, value, value_list
from etvk_guard import EtvkGuardError, open_program, reference
from etvk_guard.pte import Instruction, PlanValue
from etvk_guard.reference.dtypes import SCALAR_TYPES

NEVER = ("pickle.", "os.system", "os.exec", "os.posix_spawn", "subprocess.", "socket.", "ctypes.")


def inputs_for(data: bytes) -> list[Any]:
    """Inputs of the shapes that a sound file's first method takes."""
    method = open_program(data).methods[0]
    given: list[Any] = []
    for index in method.inputs:
        declared = method.values[index].value
        given.append(torch.ones(declared.sizes, dtype=SCALAR_TYPES[declared.dtype]))
    return given


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, where the flatbuffers are rather than where the weights are."""
    data = bytearray(whole)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        data[at] = chance.choice([0, 1, 2, 0x7F, 0xFF, chance.randrange(256)])
    return bytes(data)


@pytest.fixture(scope="module")
def events() -> list[str]:
    """Names of the audit events since the module's start that a file must not cause."""
    seen: list[str] = []

    def hook(name: str, _: tuple[Any, ...]) -> None:
        if name.startswith(NEVER):
            seen.append(name)

    sys.addaudithook(hook)  # stays until the process ends
    return seen


@pytest.mark.parametrize("path", REAL[:8], ids=lambda path: path.stem)
@pytest.mark.parametrize("contract", ["stock", "ideal"])
def test_damaged_files(path: Path, contract: str, events: list[str]) -> None:
    whole = path.read_bytes()
    name = open_program(whole).methods[0].name
    given, chance, came_through = inputs_for(whole), random.Random(path.stem), 0
    codes: set[str] = set()
    del events[:]
    for _ in range(120):
        started = time.monotonic()
        try:
            reference.run(damaged(whole, chance), given, name, contract)
            came_through += 1
        except EtvkGuardError as error:
            codes.add(error.code)
        assert time.monotonic() - started < 5
    assert came_through > 0 or contract == "stock"  # which aborts on what these files hold
    assert len(codes) > 1
    assert events == []


SHARED = 20_000


def long_list(builder: Any) -> bytes:
    """Ops that all take one long list, many times each."""
    values = [tensor(builder, 1, 4), tensor(builder, 1, 4), value_list(builder, [0] * SHARED)]
    calls = [op(builder, "aten.cat.default", [2] * 60 + [1]) for _ in range(SHARED // 20)]
    return graph(builder, values, calls, [0], [1])


def many_ops(builder: Any) -> bytes:
    values = [tensor(builder, 2, 8, 64), tensor(builder, 2, 8, 64)]  # as the method's first input
    calls = [op(builder, "aten.tanh.default", [0, 1]) for _ in range(5000)]
    return graph(builder, values, calls, [0], [1])


def test_a_long_list_that_ops_share() -> None:
    started = time.monotonic()
    with pytest.raises(reference.InterpreterError, match=r"EG405 .* lists of"):
        reference.load(program(long_list(flatbuffers.Builder())))
    assert time.monotonic() - started < 5


class Looping:
    """A program whose instructions come to no end, since its condition is never true."""

    def __init__(self, real: Any) -> None:
        self.real = real
        method = real.methods[0]
        self.methods = [method]
        condition = len(method.values)
        method.values = (*method.values, PlanValue("bool", False))
        args = (*method.inputs[:1], *method.outputs[:1])
        call = Instruction("delegate", 0, args)
        method.instructions = (call, Instruction("jump_false", -1, (condition, 0)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_a_loop_around_a_delegate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its ops counts: 250,000 runs of 5,000 ops would take hours."""
    real: Any = Looping(open_program(program(many_ops(flatbuffers.Builder()))))
    loaded = reference.LoadedMethod(real, 0, reference.Contract.IDEAL, lambda key: None)
    runs = 0
    execute = loaded._graphs[0].run

    def counted(arguments: Sequence[Any], wanted: int) -> list[Any]:
        nonlocal runs
        runs += 1
        return execute(arguments, wanted)

    monkeypatch.setattr(loaded._graphs[0], "run", counted)
    monkeypatch.setattr(reference.plan, "MAX_INSTRUCTIONS", 20_000)
    with pytest.raises(reference.InterpreterError, match=r"EG405"):
        loaded.run(inputs_for(SMALL.read_bytes()))
    assert 1 <= runs <= 4


def test_names_are_never_code(tmp_path: Path) -> None:
    """An op's name is looked up in a table, whatever it says."""
    for name in (
        "__import__('os')",
        "os.system",
        "../../x",
        "",
        "a" * 5000,
        "aten.tanh.default\0x",
    ):
        builder = flatbuffers.Builder()
        values = [tensor(builder, 1, 4), tensor(builder, 1, 4)]
        values.append(value(builder, INT, table(builder, {0: ("Int64", 7)})))
        call = op(builder, name, [0, 2, 1])
        with pytest.raises(EtvkGuardError) as caught:
            reference.load(program(graph(builder, values, [call], [0], [1])))
        assert caught.value.code == "EG401"
