# SPDX-License-Identifier: Apache-2.0
"""Typed errors: what is not supported, what does not fit, and programs that make no sense."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from etvk_guard import reference
from etvk_guard.pte import Instruction, Op, PlanTensor, PlanValue, Value, VkTensor
from etvk_guard.reference import errors, kernels
from etvk_guard.reference.call import Contract
from etvk_guard.reference.graph import LoadedGraph
from etvk_guard.reference.plan import LoadedMethod

FLOAT = 5  # VkDataType
TEXTURE, WIDTH_PACKED = 1, 0


def tensor(*dims: int, constant: int = -1, dtype: int = FLOAT) -> Value:
    return Value("tensor", VkTensor(dtype, dims, constant, -1, TEXTURE, WIDTH_PACKED, dtype))


def graph(
    values: Sequence[Value],
    ops: Sequence[tuple[str, tuple[int, ...]]],
    inputs: Sequence[int] = (0,),
    outputs: Sequence[int] = (1,),
    constants: Sequence[bytes] = (),
) -> Any:
    """A delegate of a graph that no lowering would write."""
    made = SimpleNamespace(
        values=values,
        ops=[Op(0, name, args, 0) for name, args in ops],
        input_ids=inputs,
        output_ids=outputs,
        constants=[SimpleNamespace(offset=0, named_key=None) for _ in constants],
        constant_bytes=lambda index: constants[index],
    )
    return SimpleNamespace(
        method="forward", index=0, backend="VulkanBackend", compile_specs={}, graph=made
    )


def run_graph(delegate: Any, inputs: Sequence[Any], contract: str = "ideal") -> list[Any]:
    loaded = LoadedGraph(delegate, Contract(contract), lambda key: None)
    return loaded.run(inputs, len(delegate.graph.output_ids))


X = torch.ones(2, 4)
TANH = ("aten.tanh.default", (0, 1))
HUGE = 1 << 20

GRAPHS: dict[str, tuple[Any, str]] = {
    "unknown op": (
        graph([tensor(2, 4), tensor(2, 4)], [("aten.from_file.default", (0, 1))]),
        "EG401",
    ),
    "op without arguments": (graph([tensor(2, 4)], [("aten.tanh.default", ())]), "EG408"),
    "unknown dtype": (graph([tensor(2, 4, dtype=42), tensor(2, 4)], [TANH]), "EG408"),
    "huge tensor": (graph([tensor(2, 4), tensor(HUGE, HUGE, HUGE)], [TANH]), "EG405"),
    "result too large": (graph([tensor(2, 4), tensor(2, 2)], [TANH]), "EG406"),
    "result of another rank": (graph([tensor(2, 4), tensor(2, 4, 1)], [TANH]), "EG406"),
    "input too large": (graph([tensor(2, 2), tensor(2, 4)], [TANH]), "EG403"),
    "input of another rank": (graph([tensor(8), tensor(2, 4)], [TANH]), "EG403"),
    "input that is no tensor": (graph([Value("int", 3), tensor(2, 4)], [TANH]), "EG403"),
    "output never written": (graph([tensor(2, 4), tensor(2, 4)], []), "EG408"),
    "read before written": (
        graph([tensor(2, 4), tensor(2, 4), tensor(2, 4)], [("aten.tanh.default", (2, 1))]),
        "EG406",
    ),
    "a number for a tensor": (
        graph([tensor(2, 4), tensor(2, 4), Value("int", 3)], [("aten.tanh.default", (2, 1))]),
        "EG406",
    ),
    "too many arguments": (
        graph([tensor(2, 4), tensor(2, 4)], [("aten.tanh.default", (0, 0, 1))]),
        "EG406",
    ),
    "too few arguments": (
        graph([tensor(2, 4), tensor(2, 4)], [("aten.mul.Tensor", (0, 1))]),
        "EG406",
    ),
    "list of itself": (
        graph(
            [tensor(2, 4), tensor(2, 4), Value("value_list", (2, 0))],
            [("aten.cat.default", (2, 2, 1))],
        ),
        "EG406",
    ),
    "constant too short": (
        graph(
            [tensor(2, 4), tensor(2, 4), tensor(2, 4, constant=0)],
            [("aten.mul.Tensor", (0, 2, 1))],
            constants=[b"1234"],
        ),
        "EG408",
    ),
    "fill larger than declared": (
        graph(
            [tensor(2, 4), tensor(2, 4), Value("int_list", (HUGE, HUGE)), Value("double", 0.5)],
            [("aten.full.default", (2, 3, 1))],
        ),
        "EG406",
    ),
    "repeat larger than declared": (
        graph(
            [tensor(2, 4), tensor(2, 4), Value("int_list", (HUGE, HUGE))],
            [("aten.repeat.default", (0, 2, 1))],
        ),
        "EG406",
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_that_make_no_sense(name: str) -> None:
    delegate, code = GRAPHS[name]
    with pytest.raises(reference.InterpreterError) as caught:
        run_graph(delegate, [X])
    assert caught.value.code == code
    assert caught.value.name == errors.NAMES[code]
    assert caught.value.where.method == "forward"
    assert caught.value.where.delegate == 0


def test_a_graph_that_makes_sense_runs() -> None:
    (result,) = run_graph(graph([tensor(2, 4), tensor(2, 4)], [TANH]), [X], "stock")
    assert torch.equal(result, torch.tanh(X))


@pytest.mark.parametrize(("inputs", "wanted"), [([], 1), ([X, X], 1), ([X], 2)])
def test_call_with_another_number_of_arguments_aborts(inputs: list[Any], wanted: int) -> None:
    delegate = graph([tensor(2, 4), tensor(2, 4)], [TANH])
    loaded = LoadedGraph(delegate, Contract.STOCK, lambda key: None)
    with pytest.raises(reference.StockAbortError) as caught:
        loaded.run(inputs, wanted)
    assert caught.value.code == "EG407"


# ------------------------------------------------------------------------- plans


def plan(
    values: Sequence[PlanValue],
    instructions: Sequence[Instruction],
    inputs: Sequence[int] = (0,),
    outputs: Sequence[int] = (1,),
    operators: Sequence[tuple[str, str]] = (("aten::tanh", "out"),),
    delegates: Sequence[Any] = (),
) -> Any:
    """A program of one method."""
    method = SimpleNamespace(
        name="forward",
        values=values,
        inputs=inputs,
        outputs=outputs,
        operators=operators,
        delegates=delegates,
        instructions=instructions,
    )
    return SimpleNamespace(
        methods=[method],
        named_bytes=lambda key: None,
        constant_bytes=lambda method, index, size: bytes(size),
    )


def run_plan(program: Any, inputs: Sequence[Any], data: Any = None) -> list[Any]:
    return LoadedMethod(program, 0, Contract.STOCK, data or (lambda key: None)).run(inputs)


def plain(*sizes: int, **changes: Any) -> PlanValue:
    fields: dict[str, Any] = {
        "dtype": 6,
        "sizes": sizes,
        "dim_order": tuple(range(len(sizes))),
        "data_buffer_idx": 0,
        "has_allocation": True,
        "dynamism": 0,
        "fqn": None,
        "external": False,
    }
    return PlanValue("tensor", PlanTensor(**{**fields, **changes}))


VALUES = [plain(2, 4), plain(2, 4), PlanValue("bool", False)]
CALL = Instruction("kernel", 0, (0, 1))

PLANS: dict[str, tuple[Any, str]] = {
    "endless loop": (plan(VALUES, [CALL, Instruction("jump_false", -1, (2, 0))]), "EG405"),
    "jump past the end": (plan(VALUES, [CALL, Instruction("jump_false", -1, (2, 9))]), "EG408"),
    "jump before the start": (plan(VALUES, [Instruction("jump_false", -1, (2, -1))]), "EG408"),
    "condition of many": (plan(VALUES, [Instruction("jump_false", -1, (0, 1))]), "EG406"),
    "unknown operator": (plan(VALUES, [CALL], operators=[("aten::from_file", "out")]), "EG401"),
    "operator without out": (plan(VALUES, [CALL], operators=[("aten::tanh", "")]), "EG401"),
    "another backend": (
        plan(VALUES, [], delegates=[SimpleNamespace(backend="XnnpackBackend", graph=None)]),
        "EG402",
    ),
    "operator that fails": (
        plan(
            [plain(2, 4), plain(2, 4), plain(3)],
            [Instruction("kernel", 0, (0, 2, 1))],
            operators=[("aten::mm", "out")],
        ),
        "EG406",
    ),
    "list of itself": (
        plan(
            [plain(2, 4), plain(2, 4), PlanValue("tensor_list", (2, 0)), PlanValue("int", 0)],
            [Instruction("kernel", 0, (2, 3, 1))],
            operators=[("aten::cat", "out")],
        ),
        "EG406",
    ),
    "huge tensor": (plan([plain(2, 4), plain(HUGE, HUGE)], []), "EG408"),
    "unknown dtype": (plan([plain(2, 4), plain(2, 4, dtype=99)], []), "EG408"),
    "constant in another file": (
        plan([plain(2, 4), plain(2, 4, external=True, fqn="w", has_allocation=False)], []),
        "EG014",
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_that_make_no_sense(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, code = PLANS[name]
    monkeypatch.setattr(reference.plan, "MAX_INSTRUCTIONS", 1000)
    with pytest.raises(reference.InterpreterError) as caught:
        run_plan(program, [X])
    assert caught.value.code == code
    assert caught.value.where.method == "forward"


def test_a_plan_that_makes_sense_runs() -> None:
    (result,) = run_plan(plan(VALUES, [CALL, Instruction("free", -1, (0,))]), [X])
    assert torch.equal(result, torch.tanh(X))


def test_constants_of_another_file_are_given_as_data() -> None:
    external = plain(2, 4, external=True, fqn="w", has_allocation=False)
    program = plan([plain(2, 4), external], [])
    held = torch.arange(8.0).reshape(2, 4)
    (result,) = run_plan(program, [X], {"w": held.numpy().tobytes()}.get)
    assert torch.equal(result, held)


@pytest.mark.parametrize(
    "inputs", [[], [X, X], [X.double()], [torch.ones(2, 5)], [torch.ones(8)], [3], ["x"]]
)
def test_inputs_that_do_not_fit(inputs: list[Any]) -> None:
    with pytest.raises(reference.InterpreterError) as caught:
        run_plan(plan(VALUES, [CALL]), inputs)
    assert caught.value.code == "EG403"


def test_every_listed_operator_exists() -> None:
    for name in kernels.known():
        base, _, overload = name.partition(".")
        kernel = kernels.find(base, overload)
        assert kernel is not None
        assert kernel.outputs >= (0 if name in ("aten::copy_", "aten::index_put_") else 1)


# ------------------------------------------------------------------------- the entry points


class Tanh(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)


@pytest.fixture
def program(lower: Callable[..., bytes]) -> bytes:
    return lower("tanh", Tanh(), (X,))


def test_unknown_method(program: bytes) -> None:
    with pytest.raises(reference.InterpreterError, match="forward") as caught:
        reference.run(program, [X], method="encode")
    assert caught.value.code == "EG404"


def test_unknown_contract(program: bytes) -> None:
    with pytest.raises(ValueError, match="guarded"):
        reference.run(program, [X], contract="guarded")


def test_both_contracts_run(program: bytes) -> None:
    for contract in reference.CONTRACTS:
        assert torch.equal(reference.run(program, [X], contract=contract)[0], torch.tanh(X))


def norm_of_a_texture(layout: int) -> Any:
    """rms_norm of a texture of this VkMemoryLayout, the weight a constant."""
    packed = Value("tensor", VkTensor(FLOAT, (2, 4), -1, -1, TEXTURE, layout, FLOAT))
    return graph(
        [packed, packed, tensor(4, constant=0), Value("double", 1e-6)],
        [("et_vk.rms_norm.default", (0, 2, 3, 1))],
        constants=[torch.ones(4).numpy().tobytes()],
    )


@pytest.mark.parametrize("layout", [1, 2])
def test_stock_norms_textures_packed_by_width_only(layout: int) -> None:
    (result,) = run_graph(norm_of_a_texture(WIDTH_PACKED), [X], "stock")
    torch.testing.assert_close(result, torch.ones(2, 4), rtol=1e-5, atol=0)
    with pytest.raises(errors.StockAbortError, match="not packed by width"):
        run_graph(norm_of_a_texture(layout), [X], "stock")
