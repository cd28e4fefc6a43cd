# SPDX-License-Identifier: Apache-2.0
"""Views of a program against what ExecuTorch's own reader says of the same file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from etvk_guard import EtvkGuardError, open_program
from etvk_guard.pte import PlanTensor, VkTensor

Stock = Callable[[str], Path]
NAMES = ("one_plus", "split", "methods", "layer_norm_runtime", "dynamic", "force_fp16", "buffer")


@pytest.fixture(params=NAMES)
def path(request: pytest.FixtureRequest, stock: Stock) -> Path:
    return stock(request.param)


def theirs(path: Path) -> Any:
    from executorch.exir._serialize._program import deserialize_pte_binary

    return deserialize_pte_binary(path.read_bytes())


def test_methods(path: Path) -> None:
    program, other = open_program(path), theirs(path).program
    assert program.size == path.stat().st_size
    assert program.file == str(path)
    for method, plan in zip(program.methods, other.execution_plan, strict=True):
        assert method.name == plan.name
        assert program.method(plan.name) is method
        assert list(method.inputs) == plan.inputs
        assert list(method.outputs) == plan.outputs
        assert list(method.operators) == [(op.name, op.overload) for op in plan.operators]
        for delegate, table in zip(method.delegates, plan.delegates, strict=True):
            assert delegate.backend == table.id
            specs = {spec.key: bytes(spec.value) for spec in table.compile_specs}
            assert delegate.compile_specs == specs
            blob = other.backend_delegate_data[table.processed.index].data
            assert program.read(delegate.offset, delegate.size) == blob
    with pytest.raises(KeyError):
        program.method("no such method")


def test_instructions(path: Path) -> None:
    kinds = {"KernelCall": "kernel", "DelegateCall": "delegate", "MoveCall": "move"}
    for method, plan in zip(
        open_program(path).methods, theirs(path).program.execution_plan, strict=True
    ):
        expected = []
        for instruction in plan.chains[0].instructions:
            call = instruction.instr_args
            kind = kinds[type(call).__name__]
            index = call.op_index if kind == "kernel" else call.delegate_index
            expected.append((kind, index, tuple(call.args)))
        assert [(i.kind, i.index, i.args) for i in method.instructions] == expected


def plain(value: Any) -> Any:
    """A value of ExecuTorch's reader as ours is."""
    name = type(value).__name__
    if name == "Tensor":
        extra = value.extra_tensor_info
        return PlanTensor(
            int(value.scalar_type),
            tuple(value.sizes),
            tuple(value.dim_order),
            value.data_buffer_idx,
            value.allocation_info is not None,
            int(value.shape_dynamism),
            (extra.fully_qualified_name or None) if extra else None,
            bool(extra and int(extra.location) == 1),
        )
    if name == "Null":
        return None
    content = next(iter(vars(value).values()))
    return tuple(content) if isinstance(content, list) else content


def test_plan_values(path: Path) -> None:
    for method, plan in zip(
        open_program(path).methods, theirs(path).program.execution_plan, strict=True
    ):
        assert [value.value for value in method.values] == [plain(v.val) for v in plan.values]


def test_graphs(path: Path) -> None:
    from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
        flatbuffer_to_vk_graph,
    )

    for method in open_program(path).methods:
        for delegate in method.delegates:
            graph = delegate.graph
            assert graph is not None
            other = flatbuffer_to_vk_graph(bytes(graph.flatbuffer))
            assert graph.version == other.version
            assert list(graph.input_ids) == other.input_ids
            assert list(graph.output_ids) == other.output_ids
            assert graph.storage_override == int(other.storage_type_override)
            assert graph.layout_override == int(other.memory_layout_override)
            ops = [(op.node_id, op.name, tuple(op.args)) for op in other.chain]
            assert [(op.node_id, op.name, op.args) for op in graph.ops] == ops
            values = [short(value.value) for value in graph.values]
            assert values == [short(vk(value.value)) for value in other.values]
            for constant, bytes_ in zip(graph.constants, other.constants, strict=True):
                assert (constant.length, constant.named_key) == (bytes_.length, bytes_.named_key)


def short(value: Any) -> Any:
    """Doubles to six digits: the other reader goes by way of JSON text."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def vk(value: Any) -> Any:
    if type(value).__name__ == "VkTensor":
        return VkTensor(
            int(value.datatype),
            tuple(value.dims),
            value.constant_id,
            value.mem_obj_id,
            int(value.storage_type),
            int(value.memory_layout),
            int(value.staging_datatype),
        )
    if type(value).__name__ == "Null":
        return None
    content = next(iter(vars(value).values()))
    return tuple(content) if isinstance(content, list) else content


def test_named_data_and_constants(path: Path) -> None:
    program, other = open_program(path), theirs(path).named_data
    if other is None:
        assert dict(program.named_data) == {}
        return
    assert set(program.named_data) == set(other.pte_data)
    for key, entry in other.pte_data.items():
        assert program.named_bytes(key) == other.buffers[entry.buffer_index]
    assert program.named_bytes("no such key") is None
    for method in program.methods:
        for delegate in method.delegates:
            assert delegate.graph is not None
            for index, constant in enumerate(delegate.graph.constants):
                assert constant.named_key is not None
                data = other.buffers[other.pte_data[constant.named_key].buffer_index]
                assert delegate.graph.constant_bytes(index) == data[: constant.length]


def test_offsets_of_ops_point_at_them(stock: Stock) -> None:
    """A table starts with its distance to its vtable, the first field of which is its length."""
    data = stock("one_plus").read_bytes()
    graph = open_program(data).methods[0].delegates[0].graph
    assert graph is not None
    for op in graph.ops:
        vtable = op.offset - int.from_bytes(data[op.offset : op.offset + 4], "little", signed=True)
        assert graph.offset <= vtable < graph.offset + len(graph.flatbuffer)
        assert int.from_bytes(data[vtable : vtable + 2], "little") <= 4 + 2 * 3


def test_reading_beyond_the_end(stock: Stock) -> None:
    program = open_program(stock("leaf"))
    for offset, size in ((program.size, 1), (0, program.size + 1), (2**63, 1), (1, 2**64 - 1)):
        with pytest.raises(IndexError):
            program.read(offset, size)
    assert program.read(program.size, 0) == b""
    with pytest.raises(EtvkGuardError) as caught:
        program.constant_bytes(0, 99, 4)
    assert caught.value.code == "EG014"
    assert caught.value.where.method == "forward"
