# SPDX-License-Identifier: Apache-2.0
"""The partitioner as a drop-in: every route, stock's own options, and nothing left behind."""

from __future__ import annotations

import gc
import logging
import warnings
from typing import Any

import pytest
import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.patterns import fusable_patterns
from executorch.backends.vulkan.vulkan_preprocess import VulkanBackend
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge, to_edge_transform_and_lower
from executorch.exir.backend.partitioner import Partitioner
from executorch.exir.dialects._ops import ops as exir_ops
from lowering_cases import Module, rand, rms, short, weight
from norm_cases import WRITTEN
from torch import nn

import etvk_guard
from etvk_guard import reference
from etvk_guard.lowering import Decision, GuardedVulkanPartitioner, LoweringError, hook
from etvk_guard.lowering.graph import RULE_KEY

D = 16
X = rand(2, 3, D)
STOCK_PREPROCESS = VulkanBackend.__dict__["preprocess"]


class Norm(nn.Module):
    """norm(x) * (1 + w)."""

    def __init__(self) -> None:
        super().__init__()
        self.w = weight(D)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return rms(x) * (1.0 + self.w)


class Block(nn.Module):
    """Two norms and a linear layer, in named modules."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Norm()
        self.mix = nn.Linear(D, D)
        self.second = Norm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.mix(self.first(x)))


def _export(module: nn.Module, *inputs: torch.Tensor) -> Any:
    return torch.export.export(module.eval(), inputs)


def _ops(data: bytes) -> list[list[str]]:
    method = etvk_guard.open_program(data).methods[0]
    return [[op.name for op in d.graph.ops] if d.graph else [] for d in method.delegates]


def test_takes_the_same_arguments() -> None:
    partitioner = GuardedVulkanPartitioner(
        {"force_fp16": True}, [exir_ops.edge.aten.relu.default], None, ["Linear"], None
    )
    stock = VulkanPartitioner(
        {"force_fp16": True}, [exir_ops.edge.aten.relu.default], None, ["Linear"], None
    )
    assert isinstance(partitioner, Partitioner)
    assert isinstance(partitioner, VulkanPartitioner)
    assert partitioner.delegation_spec == stock.delegation_spec
    assert partitioner.operator_blocklist == stock.operator_blocklist
    assert partitioner.nn_module_blocklist == stock.nn_module_blocklist
    with pytest.raises(ValueError, match="runtime"):
        GuardedVulkanPartitioner(runtime="other")  # type: ignore[arg-type]


@pytest.mark.parametrize("route", ["to_backend", "transform_and_lower", "list"])
def test_routes_agree(route: str) -> None:
    program, module = _export(Norm(), X), Norm()
    partitioner = GuardedVulkanPartitioner()
    if route == "to_backend":
        edge = to_edge(program).to_backend(partitioner)
    elif route == "list":
        partitioners = [partitioner, XnnpackPartitioner()]
        edge = to_edge_transform_and_lower(program, partitioner=partitioners)
    else:
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    data = bytes(edge.to_executorch().buffer)
    assert _ops(data) == [["et_vk.rms_norm.default"]]
    assert [d.backend for d in etvk_guard.open_program(data).methods[0].delegates] == [
        "VulkanBackend"
    ]
    torch.testing.assert_close(reference.run(data, (X,))[0], module(X), rtol=1e-5, atol=1e-6)


def test_other_partitioners_get_what_is_left() -> None:
    module = Module(lambda m, x, w: rms(torch.nn.functional.conv1d(x, w)))
    inputs = (rand(1, 3, D), rand(4, 3, 1))
    partitioner = GuardedVulkanPartitioner()
    edge = to_edge_transform_and_lower(
        _export(module, *inputs), partitioner=[partitioner, XnnpackPartitioner()]
    )
    data = bytes(edge.to_executorch().buffer)
    assert _ops(data) == [["et_vk.rms_norm.default"]]
    assert partitioner.report.count(Decision.CPU) == 1


def test_methods_share_a_report() -> None:
    programs = {"one": _export(Norm(), X), "two": _export(Block(), X)}
    partitioner = GuardedVulkanPartitioner()
    edge = to_edge_transform_and_lower(programs, partitioner=[partitioner])
    program = etvk_guard.open_program(bytes(edge.to_executorch().buffer))
    assert {m.name: len(m.delegates) for m in program.methods} == {"one": 1, "two": 1}
    assert partitioner.report.programs == 2
    norms = [e for e in partitioner.report if e.rule == "rms_norm"]
    assert [(e.program, e.site) for e in norms] == [(0, norms[0].site), (1, "first"), (1, "second")]


def test_module_blocklist_is_kept() -> None:
    partitioner = GuardedVulkanPartitioner(nn_module_blocklist=["Norm"])
    module = Block()
    edge = to_edge_transform_and_lower(_export(module, X), partitioner=[partitioner])
    data = bytes(edge.to_executorch().buffer)
    assert all("et_vk.rms_norm.default" not in ops for ops in _ops(data))
    assert {e.decision for e in partitioner.report if e.rule == "rms_norm"} == {Decision.CPU}
    torch.testing.assert_close(reference.run(data, (X,))[0], module(X), rtol=1e-5, atol=1e-6)


def test_operator_blocklist_is_kept() -> None:
    blocked = [exir_ops.edge.aten.rsqrt.default]
    partitioner = GuardedVulkanPartitioner(operator_blocklist=blocked)
    edge = to_edge_transform_and_lower(_export(Norm(), X), partitioner=[partitioner])
    data = bytes(edge.to_executorch().buffer)
    method = etvk_guard.open_program(data).methods[0]
    assert [name for name, _ in method.operators] == ["aten::rsqrt"]
    torch.testing.assert_close(reference.run(data, (X,))[0], Norm()(X), rtol=1e-5, atol=1e-6)


def test_compile_options_reach_the_delegate() -> None:
    partitioner = GuardedVulkanPartitioner({"force_fp16": True})
    edge = to_edge_transform_and_lower(_export(Norm(), X), partitioner=[partitioner])
    delegate = etvk_guard.open_program(bytes(edge.to_executorch().buffer)).methods[0].delegates[0]
    assert dict(delegate.compile_specs) == {"force_fp16": b"\x01"}


def test_debug_handles_and_stack_traces_are_kept() -> None:
    edge = to_edge(_export(Block(), X))
    handles = {
        n.meta["debug_handle"]: n
        for n in edge.exported_program().graph.nodes
        if n.op == "call_function"
    }
    lowered = edge.to_backend(GuardedVulkanPartitioner())
    module = next(
        m
        for name, m in lowered.exported_program().graph_module.named_children()
        if name.startswith("lowered_module")
    )
    mapped = [h for key, found in sorted(module.meta["debug_handle_map"].items()) for h in found]
    sources = [handles[h] for h in mapped if h in handles]
    stacks = [str(list(n.meta["nn_module_stack"].values())[-1][0]) for n in sources]
    assert [s for s in stacks if "first" in s]
    assert [s for s in stacks if "second" in s]
    assert all(n.meta.get("stack_trace") for n in sources)


def test_rewritten_nodes_carry_the_rule() -> None:
    from etvk_guard.lowering.preprocess import rewrite

    edge = to_edge(_export(Block(), X)).exported_program()
    partitioner = GuardedVulkanPartitioner()
    tagged = partitioner.partition(edge).tagged_exported_program
    traces = {n.meta.get("stack_trace") for n in tagged.graph.nodes}
    rewrite(tagged, partitioner.report, "stock")
    made = [n for n in tagged.graph.nodes if n.op == "call_function" and RULE_KEY in n.meta]
    assert [n.meta[RULE_KEY] for n in made] == ["rms_norm", "rms_norm"]
    assert {n.meta["stack_trace"] for n in made} <= traces
    assert all(isinstance(n.meta["debug_handle"], int) for n in made)


def test_nothing_is_left_behind() -> None:
    gc.collect()  # partitions that other tests abandoned
    assert not hook.armed()
    patterns = dict(fusable_patterns)
    to_edge_transform_and_lower(_export(Block(), X), partitioner=[GuardedVulkanPartitioner()])
    assert VulkanBackend.__dict__["preprocess"] is STOCK_PREPROCESS
    assert not hook.armed()
    assert dict(fusable_patterns) == patterns
    assert "partition" in vars(VulkanPartitioner)
    assert not hasattr(VulkanPartitioner.partition, "__wrapped__")


def test_an_abandoned_partition_is_forgotten() -> None:
    edge = to_edge(_export(Norm(), X)).exported_program()
    result = GuardedVulkanPartitioner().partition(edge)
    assert hook.armed()
    assert VulkanBackend.__dict__["preprocess"] is not STOCK_PREPROCESS
    del edge, result
    gc.collect()
    assert not hook.armed()
    assert VulkanBackend.__dict__["preprocess"] is STOCK_PREPROCESS


def test_stock_is_unchanged_while_armed() -> None:
    module = Block()

    def stock() -> bytes:
        program = _export(module, X)
        edge = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner()])
        return bytes(edge.to_executorch().buffer)

    before = stock()
    pending = GuardedVulkanPartitioner().partition(to_edge(_export(Norm(), X)).exported_program())
    assert hook.armed()
    assert stock() == before
    del pending


def test_lowered_program_keeps_the_original_graph() -> None:
    edge = to_edge(_export(Norm(), X)).to_backend(GuardedVulkanPartitioner())
    module = next(
        m
        for name, m in edge.exported_program().graph_module.named_children()
        if name.startswith("lowered_module")
    )
    names = [
        n.target.__name__ for n in module.original_module.graph.nodes if n.op == "call_function"
    ]
    assert "aten.rsqrt.default" in names
    assert "et_vk.rms_norm.default" not in names


def test_guarded_runtime_keeps_the_fold() -> None:
    module = Module(lambda m, x, s: rms(x) * (1 + s))
    inputs = (X, rand(1, 1, D))
    partitioner = GuardedVulkanPartitioner(runtime="guarded")
    edge = to_edge_transform_and_lower(_export(module, *inputs), partitioner=[partitioner])
    data = bytes(edge.to_executorch().buffer)
    delegate = etvk_guard.open_program(data).methods[0].delegates[0]
    assert [op.name for op in delegate.graph.ops][-1] == "et_vk.rms_norm.default"
    assert delegate.compile_specs["etvk_guard_runtime"] == b"1"
    assert [f.name for f in etvk_guard.check(data).findings] == ["needs-guarded-runtime"]
    assert partitioner.report.needs_guarded_runtime
    assert partitioner.report.count(Decision.KEPT) == 1


def test_guarded_runtime_leaves_other_shapes() -> None:
    module = Module(lambda m, x, s: rms(x) * (1 + s))
    partitioner = GuardedVulkanPartitioner(runtime="guarded")
    program = _export(module, X, rand(2, 1, D))
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    data = bytes(edge.to_executorch().buffer)
    assert etvk_guard.check(data).findings == ()
    delegate = etvk_guard.open_program(data).methods[0].delegates[0]
    assert "etvk_guard_runtime" not in delegate.compile_specs


def test_a_buffer_that_the_program_writes_stays_outside() -> None:
    module, inputs = WRITTEN.make()
    partitioner = GuardedVulkanPartitioner()
    edge = to_edge_transform_and_lower(_export(module, *inputs), partitioner=[partitioner])
    buffer = next(n for n in edge.exported_program().graph.nodes if n.name == "b_w")
    assert buffer.meta["et_init_buffer"]  # else the runtime starts it from zeros
    with warnings.catch_warnings(record=True) as caught:
        data = bytes(edge.to_executorch().buffer)
    assert any("Mutation on a buffer" in str(warning.message) for warning in caught)
    assert etvk_guard.check(data).findings == ()
    method = etvk_guard.open_program(data).methods[0]
    assert [short(op) for op in _ops(data)[0]] == WRITTEN.delegates[0].split()
    assert [name for name, _ in method.operators] == list(WRITTEN.cpu)
    call = next(i for i in method.instructions if i.kind == "delegate")
    graph = method.delegates[0].graph
    assert len(call.args) == len(graph.input_ids) + len(graph.output_ids) == 4
    entry = next(e for e in partitioner.report if e.rule == "rms_norm")
    assert WRITTEN.reason in entry.reason


def test_every_decision_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    partitioner = GuardedVulkanPartitioner()
    with caplog.at_level(logging.INFO, logger="etvk_guard.lowering"):
        to_edge_transform_and_lower(_export(Block(), X), partitioner=[partitioner])
    lines = [r.getMessage() for r in caplog.records if r.name == "etvk_guard.lowering"]
    assert lines == [str(entry) for entry in partitioner.report]
    assert any(line.startswith("first: rms_norm: (x*rsqrt(v))*w: evaluated") for line in lines)


def test_an_unknown_release_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def partition(self: Any, exported_program: Any) -> Any:
        return exported_program

    monkeypatch.setattr(VulkanPartitioner, "partition", partition)
    with pytest.raises(LoweringError, match="does not use VulkanSupportedOperators"):
        GuardedVulkanPartitioner().partition(to_edge(_export(Norm(), X)).exported_program())
