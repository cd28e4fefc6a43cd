# SPDX-License-Identifier: Apache-2.0
"""Views of a validated program and of the Vulkan graphs in it.

Numbers of enums (dtypes, storage types, memory layouts) are those of ExecuTorch's schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from etvk_guard import _native
from etvk_guard.pte._check import Report, report_of
from etvk_guard.pte._errors import EtvkGuardError, Where
from etvk_guard.pte._sources import Source, SourceReader, open_source

__all__ = [
    "Constant",
    "Delegate",
    "Graph",
    "Instruction",
    "Method",
    "Op",
    "PlanTensor",
    "PlanValue",
    "Program",
    "Value",
    "VkTensor",
    "open_program",
]


@dataclass(frozen=True, slots=True)
class VkTensor:
    """A tensor of a graph.

    Attributes:
        dtype: VkDataType.
        dims: sizes, outermost first.
        constant_id: index into the graph's constants; negative: not a constant.
        mem_obj_id: tensors of equal id share memory; negative: owns its memory.
        storage: VkStorageType; 255: the graph's override, or the delegate's default.
        layout: VkMemoryLayout; 255: the same.
        staging_dtype: VkDataType on the CPU's side; 127: the same as `dtype`.
    """

    dtype: int
    dims: tuple[int, ...]
    constant_id: int
    mem_obj_id: int
    storage: int
    layout: int
    staging_dtype: int


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a graph.

    `kind` is "null", "int", "double", "bool", "tensor", "int_list", "double_list", "bool_list",
    "value_list" (ids of values), "string" or "symint"; `value` is None, a number, a VkTensor, a
    tuple of numbers or a str.
    """

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Op:
    """A call of an op: `args` are ids of values, the last of them the result.

    `offset` counts bytes from the start of the file.
    """

    node_id: int
    name: str
    args: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Constant:
    """Data that a tensor starts with: `length` bytes.

    `offset` counts from the start of the file; None: the data lies in another file, under
    `named_key`.
    """

    offset: int | None
    length: int
    named_key: str | None


class Graph:
    """A VkGraph: what a Vulkan delegate runs."""

    def __init__(self, native: _native.Graph, program: Program, where: Where) -> None:
        """View a native graph of `program`."""
        self._native = native
        self._program = program
        self._where = where
        self.version: str = native.version
        self.offset: int = native.offset
        """Bytes from the start of the file to the graph's flatbuffer."""
        self.input_ids: Sequence[int] = tuple(native.input_ids)
        self.output_ids: Sequence[int] = tuple(native.output_ids)
        self.storage_override: int = native.storage_override
        self.layout_override: int = native.layout_override

    @cached_property
    def ops(self) -> Sequence[Op]:
        """The calls in order."""
        return tuple(Op(node, name, tuple(args), at) for node, name, args, at in self._native.ops)

    @cached_property
    def values(self) -> Sequence[Value]:
        """The values; ids are indices into them."""
        return tuple(
            Value(kind, VkTensor(*value) if kind == "tensor" else value)
            for kind, value in self._native.values
        )

    @cached_property
    def constants(self) -> Sequence[Constant]:
        """The data of the graph's constant tensors."""
        return tuple(Constant(*row) for row in self._native.constants)

    @property
    def flatbuffer(self) -> memoryview:
        """The bytes of the VkGraph flatbuffer, in place."""
        return self._native.flatbuffer

    def constant_bytes(self, constant_id: int) -> bytes:
        """The bytes of a constant. Raises EtvkGuardError (EG014) if they are not in the file."""
        constant = self.constants[constant_id]
        if constant.offset is None:
            raise EtvkGuardError(
                "EG014",
                "bad-constant",
                f"the program has no data named '{constant.named_key}'",
                self._where,
                "Its weights are in a .ptd file, which has to be given too.",
            )
        return self._program.read(constant.offset, constant.length)


@dataclass(frozen=True, slots=True)
class PlanTensor:
    """A tensor of a method.

    Attributes:
        dtype: ScalarType.
        sizes: outermost first; upper bounds where `dynamism` is 1.
        dim_order: dimensions from the outermost in memory to the innermost.
        data_buffer_idx: index of its constant data, or with `has_allocation` of the value that it
            starts with; 0: it has none.
        has_allocation: whether it lies in planned memory.
        dynamism: 0 static, 1 bounded, 2 unbounded.
        fqn: fully qualified name, if it has one.
        external: whether its data lies in another file, under `fqn`.
    """

    dtype: int
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    data_buffer_idx: int
    has_allocation: bool
    dynamism: int
    fqn: str | None
    external: bool


@dataclass(frozen=True, slots=True)
class PlanValue:
    """A value of a method.

    `kind` is "null", "int", "bool", "double", "tensor", "string", "int_list", "double_list",
    "bool_list", "tensor_list" or "optional_tensor_list" (the lists of tensors, and those of
    ints, hold indices of values); `value` is None, a number, a PlanTensor, a tuple or a str.
    """

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Instruction:
    """A step of a method.

    `index` is that of the operator ("kernel") or the delegate ("delegate"), else -1. `args` are
    indices of values; of a "jump_false", the condition's and the instruction to go to.
    """

    kind: Literal["kernel", "delegate", "move", "jump_false", "free"]
    index: int
    args: tuple[int, ...]


class Delegate:
    """A part of a method that a backend runs."""

    def __init__(self, program: Program, method: tuple[int, str], row: tuple[Any, ...]) -> None:
        """View a delegate of a method, which is given by index and name."""
        self._program = program
        self._method_index, self.method = method
        self.index: int
        self.backend: str
        self.offset: int
        """Bytes from the start of the file to the backend's data."""
        self.size: int
        """Bytes of the backend's data."""
        self.index, self.backend, self.offset, self.size, specs = row
        self.compile_specs: Mapping[str, bytes] = dict(specs)

    @cached_property
    def graph(self) -> Graph | None:
        """The graph of a Vulkan delegate; None for another backend."""
        native = self._program._native.graph(self._method_index, self.index)
        where = Where(self.method, self.index)
        return None if native is None else Graph(native, self._program, where)


class Method:
    """An ExecutionPlan."""

    def __init__(self, program: Program, index: int) -> None:
        """View the method of this index."""
        self._program = program
        self._index = index
        name, inputs, outputs, operators = program._native.method(index)
        self.name: str = name
        self.inputs: Sequence[int] = tuple(inputs)
        self.outputs: Sequence[int] = tuple(outputs)
        self.operators: Sequence[tuple[str, str]] = tuple(operators)
        """Name and overload of each operator that instructions call."""

    @cached_property
    def values(self) -> Sequence[PlanValue]:
        """The values; instructions name them by index."""
        return tuple(
            PlanValue(kind, PlanTensor(*value) if kind == "tensor" else value)
            for kind, value in self._program._native.values(self._index)
        )

    @cached_property
    def instructions(self) -> Sequence[Instruction]:
        """The steps in order."""
        return tuple(
            Instruction(kind, index, tuple(args))  # type: ignore[arg-type]
            for kind, index, args in self._program._native.instructions(self._index)
        )

    @cached_property
    def delegates(self) -> Sequence[Delegate]:
        """The delegates in the file's order."""
        rows = self._program._native.delegates(self._index)
        return tuple(Delegate(self._program, (self._index, self.name), row) for row in rows)


class Program:
    """A `.pte` whose headers, flatbuffers and Vulkan graphs are valid; keeps its source open."""

    def __init__(self, reader: SourceReader) -> None:
        """Read and validate."""
        self._reader = reader
        with reader.named():
            self._native = _native.Program(reader.native)

    @property
    def file(self) -> str | None:
        """Name of the file, if the source is one."""
        return self._reader.name

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._native.size

    @cached_property
    def methods(self) -> Sequence[Method]:
        """The methods in the file's order."""
        return tuple(Method(self, index) for index in range(self._native.method_count))

    @cached_property
    def segments(self) -> Sequence[tuple[int, int]]:
        """Offset in the file and size of each segment."""
        return tuple(self._native.segments)

    @cached_property
    def named_data(self) -> Mapping[str, int]:
        """Key to index of the segment that holds the data."""
        return self._native.named_data

    def method(self, name: str) -> Method:
        """The method of this name. Raises KeyError."""
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(name)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file. Raises IndexError where they are not in it."""
        with self._reader.named():
            return self._native.read(offset, size)

    def named_bytes(self, key: str) -> bytes | None:
        """The data of this name, or None."""
        segment = self.named_data.get(key)
        return None if segment is None else self.read(*self.segments[segment])

    def constant_bytes(self, method_index: int, data_buffer_idx: int, nbytes: int) -> bytes:
        """The first `nbytes` bytes of a method's constant tensor.

        Raises EtvkGuardError (EG014) if the program has no such constant, or not as many bytes.
        """
        found = self._native.constant_range(data_buffer_idx, nbytes)
        return self._range(found, f"constant {data_buffer_idx}", method_index, nbytes)

    def initial_bytes(self, method_index: int, data_buffer_idx: int, nbytes: int) -> bytes:
        """The first `nbytes` bytes that a tensor in a method's planned memory starts with.

        Raises as `constant_bytes`.
        """
        found = self._native.initial_range(data_buffer_idx, nbytes)
        return self._range(found, f"initial value {data_buffer_idx}", method_index, nbytes)

    def _range(
        self, found: tuple[int, int] | None, what: str, method_index: int, nbytes: int
    ) -> bytes:
        if found is None:
            raise EtvkGuardError(
                "EG014",
                "bad-constant",
                f"{what} does not have {nbytes} bytes",
                Where(self.methods[method_index].name),
                "Export the program again; the file was damaged or edited.",
            )
        return self.read(found[0], nbytes)

    def check(self) -> Report:
        """What `etvk_guard.check` finds in this program."""
        with self._reader.named():
            return report_of(self._reader, self._native)


def open_program(src: Source) -> Program:
    """Open a `.pte` for reading: methods, delegates, graphs, values, constants.

    Args:
        src: what `check` takes.

    Raises:
        EtvkGuardError: `src` cannot be read, or is not a valid program.
    """
    return Program(open_source(src))
