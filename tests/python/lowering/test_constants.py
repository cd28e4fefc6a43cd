# SPDX-License-Identifier: Apache-2.0
"""Which values are known when lowering, and what they are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.exir import to_edge
from lowering_cases import Module, rand, weight
from torch import nn

from etvk_guard.lowering.constants import Constants


class Model(nn.Module):
    """One of each kind of value."""

    def __init__(self) -> None:
        super().__init__()
        self.parameter = weight(4)
        self.register_buffer("fixed", rand(4, seed=2))
        self.register_buffer("written", rand(4, seed=3))
        self.register_buffer("unsaved", rand(4, seed=4), persistent=False)

    def forward(self, x: torch.Tensor) -> Any:
        known = (1.0 + self.parameter) * self.fixed.half().float() - self.unsaved
        known = known + torch.tensor([1.0, 2.0, 3.0, 4.0]) + torch.full((4,), 0.5)
        unknown = self.written * 2 + x + torch.rand(4)
        self.written.add_(1)
        return known * x, unknown


@pytest.fixture(scope="module")
def program() -> Any:
    module = Model().eval()
    return module, to_edge(torch.export.export(module, (rand(4),))).exported_program()


def _node(program: Any, name: str) -> torch.fx.Node:
    found: torch.fx.Node = next(n for n in program.graph.nodes if n.name == name)
    return found


def test_leaves(program: Any) -> None:
    _, edge = program
    constants = Constants(edge)
    for name in ("p_parameter", "b_fixed", "b_unsaved"):
        assert constants.leaf(_node(edge, name))
        assert constants.known(_node(edge, name))
        assert not constants.computed(_node(edge, name))
    for name in ("b_written", "x"):
        assert not constants.leaf(_node(edge, name))
        assert not constants.known(_node(edge, name))
    assert constants.mutable(_node(edge, "b_written"))
    assert not constants.mutable(_node(edge, "b_fixed"))
    assert constants.target(_node(edge, "p_parameter")) == "parameter"


def test_a_computed_value_is_eagers(program: Any) -> None:
    module, edge = program
    constants = Constants(edge)
    product = next(n for n in edge.graph.nodes if n.op == "output").args[0]
    multiply = next(n for n in product if n.op == "call_function" and n.users and "mul" in n.name)
    known = next(a for a in multiply.args if constants.computed(a))
    expected = (1.0 + module.parameter) * module.fixed.half().float() - module.unsaved
    expected = expected + torch.tensor([1.0, 2.0, 3.0, 4.0]) + 0.5
    assert torch.equal(constants.evaluate(known), expected.detach())
    chain = constants.chain(known)
    assert known in chain
    assert all(step.op == "call_function" and constants.known(step) for step in chain)


def test_random_numbers_and_written_buffers_are_not_known(program: Any) -> None:
    _, edge = program
    constants = Constants(edge)
    rand_node = next(n for n in edge.graph.nodes if "rand" in n.name)
    assert not constants.known(rand_node)
    doubled = next(iter(_node(edge, "b_written").users))
    assert not constants.known(doubled)
    assert constants.culprit(doubled) == "buffer `written`, which the program writes"


def test_culprit_names_the_input() -> None:
    module = Module(lambda m, x, y: torch.relu(y * 2) + x)
    edge = to_edge(torch.export.export(module, (rand(4), rand(4)))).exported_program()
    relu = next(n for n in edge.graph.nodes if "relu" in n.name)
    assert Constants(edge).culprit(relu) == "input `inputs_1`"


def test_fake_weights_have_no_value(program: Any) -> None:
    from executorch.exir.program._fake_program import get_fake_program

    _, edge = program
    fake = get_fake_program(edge)
    constants = Constants(fake)
    assert constants.known(_node(fake, "p_parameter"))
    with pytest.raises(ValueError, match="not at hand"):
        constants.evaluate(_node(fake, "p_parameter"))
