# SPDX-License-Identifier: Apache-2.0
"""A VkGraph in torch: loaded as `VulkanBackend::init` loads it, run as `execute` runs it.

Values keep the dtype that their VkTensor declares between ops: half values are rounded to half, as
on the GPU. Declared dims are upper bounds; shapes are those of the actual inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from etvk_guard.pte import EtvkGuardError, Where
from etvk_guard.reference import errors, stock
from etvk_guard.reference.call import Call, Contract, Result
from etvk_guard.reference.dtypes import (
    CHANNELS_PACKED,
    DEFAULT_LAYOUT,
    DEFAULT_STORAGE,
    TEXTURE_3D,
    VK_DTYPES,
    VK_UNSET,
    WIDTH_PACKED,
    nbytes,
)
from etvk_guard.reference.ops import OPS

if TYPE_CHECKING:
    from etvk_guard.pte import Delegate, Graph, VkTensor

# Larger tensors than this are refused: it is an oracle, not a runtime.
MAX_TENSOR_BYTES: Final = 1 << 31


# Items of value lists that the ops of a graph take, counted anew for each op that takes a list.
MAX_LIST_ITEMS: Final = 250_000

ConstantBytes = Callable[[str], bytes | None]


class LoadedGraph:
    """A delegate that is ready to run. Prepacked tensors, and caches, live as long as it does."""

    def __init__(self, delegate: Delegate, contract: Contract, data: ConstantBytes) -> None:
        """Load it: every op is known, no tensor is too large, and no argument makes stock abort.

        `data` gives the bytes of a named constant that is not in the program file.

        Raises:
            StockAbortError: with contract "stock", where a stock delegate throws while it loads.
            InterpreterError: an op is not supported here (EG401), or the graph makes no sense.
        """
        if delegate.graph is None:
            raise ValueError("not a Vulkan delegate")
        self._delegate = delegate
        self._graph: Graph = delegate.graph
        self._contract = contract
        self._data = data
        self._constants: dict[int, torch.Tensor] = {}
        self._states: dict[int, dict[str, torch.Tensor]] = {}
        self._prepacked: dict[int, torch.Tensor] = {}
        self._load()

    def run(self, arguments: Sequence[Any], wanted: int) -> list[Any]:
        """Run on the delegate call's input values; the graph's outputs in order.

        Args:
            arguments: tensors and numbers, of the shapes of this call.
            wanted: how many outputs the delegate call has a place for.

        Raises:
            StockAbortError: the delegate call has another number of arguments than the graph.
            InterpreterError: an input or an op fails.
        """
        graph = self._graph
        if len(arguments) != len(graph.input_ids) or wanted != len(graph.output_ids):
            counts = f"{len(graph.input_ids)} inputs and {len(graph.output_ids)} outputs"
            given = f"{len(arguments)} and {wanted}"
            raise errors.stock_abort(f"the graph has {counts}, the call {given}", self._where())
        values: dict[int, Any] = dict(self._prepacked)
        for value_id, argument in zip(graph.input_ids, arguments, strict=True):
            values[value_id] = self._input(value_id, argument)
        for index, op in enumerate(graph.ops):
            if op.args[-1] not in self._prepacked:
                self._run_op(index, values)
            for dead in self._dead_after[index]:
                values.pop(dead, None)
        return [self._output(value_id, values) for value_id in graph.output_ids]

    # ------------------------------------------------------------------ declarations

    @property
    def op_count(self) -> int:
        """How many ops one run takes."""
        return len(self._graph.ops)

    @property
    def input_count(self) -> int:
        """How many arguments of the delegate call are inputs."""
        return len(self._graph.input_ids)

    def declared(self, value_id: int) -> VkTensor:
        """The VkTensor of a value; ValueError where it is none."""
        value = self._graph.values[value_id]
        if value.kind != "tensor":
            raise ValueError(f"value {value_id} is a {value.kind}, not a tensor")
        tensor: VkTensor = value.value
        return tensor

    def is_constant(self, value_id: int) -> bool:
        """Whether a value is serialized data (a tref)."""
        value = self._graph.values[value_id]
        return value.kind == "tensor" and value.value.constant_id >= 0

    def storage(self, tensor: VkTensor) -> int:
        """A tensor's VkStorageType, the delegate's default applied (`get_graph_config`)."""
        if tensor.storage != DEFAULT_STORAGE:
            return tensor.storage
        return self._compile_option("storage_type_override", TEXTURE_3D)

    def layout(self, tensor: VkTensor) -> int:
        """A tensor's VkMemoryLayout, the delegate's default applied (`suggested_memory_layout`)."""
        if tensor.layout != DEFAULT_LAYOUT:
            return tensor.layout
        flat = len(tensor.dims) < 3 or tensor.dims[-3] == 1
        default = WIDTH_PACKED if flat else CHANNELS_PACKED
        return self._compile_option("memory_layout_override", default)

    def _compile_option(self, key: str, default: int) -> int:
        given = self._delegate.compile_specs.get(key)
        return default if given is None else int.from_bytes(given[:4], "little")

    def out_ids(self, out: int) -> tuple[int, ...]:
        """The value ids of an op's result: the items of a list, or the value itself."""
        value = self._graph.values[out]
        return tuple(value.value) if value.kind == "value_list" else (out,)

    # ------------------------------------------------------------------ loading

    def _where(self, op_index: int | None = None) -> Where:
        method, index = self._delegate.method, self._delegate.index
        if op_index is None:
            return Where(method=method, delegate=index)
        op = self._graph.ops[op_index]
        return Where(method, index, op_index, op.name, None, op.offset)

    def _load(self) -> None:
        for value_id, value in enumerate(self._graph.values):
            if value.kind == "tensor":
                self._check_tensor(value_id, value.value)
        self._check_lists()
        for index, op in enumerate(self._graph.ops):
            if op.name not in OPS:
                message = f"the reference interpreter lacks the op {op.name}"
                raise errors.error(errors.UNSUPPORTED_OP, message, self._where(index))
            if not op.args:
                raise self._bad(f"{op.name} has no arguments", index)
            if self._contract is Contract.STOCK:
                stock.check_op(self._graph, index, self._where(index))
        self._dead_after = self._lifetimes()

    def _check_lists(self) -> None:
        """Ops may share one long list, which a small file can then go through very often."""
        sizes = {
            value_id: len(value.value)
            for value_id, value in enumerate(self._graph.values)
            if value.kind == "value_list"
        }
        items = sum(sizes.get(argument, 0) for op in self._graph.ops for argument in op.args)
        if items > MAX_LIST_ITEMS:
            message = f"the ops take lists of {items} values, more than {MAX_LIST_ITEMS}"
            raise errors.error(errors.BUDGET, message, self._where())

    def _check_tensor(self, value_id: int, tensor: VkTensor) -> None:
        if tensor.dtype not in VK_DTYPES:
            raise self._bad(f"value {value_id} has the unknown dtype {tensor.dtype}")
        size = nbytes(VK_DTYPES[tensor.dtype], tuple(tensor.dims))
        if size > MAX_TENSOR_BYTES:
            message = f"value {value_id} has {size} bytes, more than {MAX_TENSOR_BYTES}"
            raise errors.error(errors.BUDGET, message, self._where())

    def _bad(self, message: str, op_index: int | None = None) -> errors.InterpreterError:
        return errors.error(errors.BAD_PROGRAM, message, self._where(op_index))

    def _lifetimes(self) -> list[list[int]]:
        """For each op, the values that nothing after it reads."""
        kept = set(self._graph.output_ids)
        dead: list[list[int]] = [[] for _ in self._graph.ops]
        for index in range(len(self._graph.ops) - 1, -1, -1):
            for argument in self._graph.ops[index].args:
                for value_id in self.out_ids(argument):
                    if value_id not in kept:
                        kept.add(value_id)
                        dead[index].append(value_id)
        return dead

    # ------------------------------------------------------------------ values

    def _constant(self, value_id: int) -> torch.Tensor:
        if value_id not in self._constants:
            tensor = self.declared(value_id)
            dtype, dims = VK_DTYPES[tensor.dtype], tuple(tensor.dims)
            raw = self._constant_bytes(tensor.constant_id)
            size = nbytes(dtype, dims)
            if len(raw) < size:
                message = f"constant {tensor.constant_id} has {len(raw)} bytes, {size} are needed"
                raise self._bad(message)
            self._constants[value_id] = (
                torch.frombuffer(bytearray(raw[:size]), dtype=dtype).reshape(dims)
                if size
                else torch.empty(dims, dtype=dtype)
            )
        return self._constants[value_id]

    def _constant_bytes(self, constant_id: int) -> bytes:
        constant = self._graph.constants[constant_id]
        if constant.offset is not None or constant.named_key is None:
            return self._graph.constant_bytes(constant_id)
        outside = self._data(constant.named_key)
        if outside is None:
            raise errors.missing_data(constant.named_key, self._where())
        return outside

    def _value(self, value_id: int, values: dict[int, Any], depth: int = 0) -> Any:
        """A value as Python has it: a tensor, a number, a string, None, or a list of these."""
        value = self._graph.values[value_id]
        if value.kind == "value_list":
            if depth:
                raise ValueError("a list of values holds another one")
            return [self._value(item, values, depth + 1) for item in value.value]
        if value_id in values:
            return values[value_id]
        if value.kind == "tensor":
            if value.value.constant_id < 0:
                raise ValueError(f"value {value_id} is read before anything writes it")
            return self._constant(value_id)
        return list(value.value) if value.kind.endswith("_list") else value.value

    def _input(self, value_id: int, argument: Any) -> Any:
        value = self._graph.values[value_id]
        if value.kind == "symint":
            return int(argument.reshape(()).item() if torch.is_tensor(argument) else argument)
        if value.kind != "tensor" or not isinstance(argument, torch.Tensor):
            got = type(argument).__name__
            raise self._input_error(f"input value {value_id} is a {value.kind}, given a {got}")
        tensor: VkTensor = value.value
        fits = len(tensor.dims) == argument.dim() and all(
            actual <= bound for actual, bound in zip(argument.shape, tensor.dims, strict=True)
        )
        if not fits:
            shape, bound = list(argument.shape), list(tensor.dims)
            raise self._input_error(f"input value {value_id} is {shape}, {bound} at most is wanted")
        staging = tensor.dtype if tensor.staging_dtype == VK_UNSET else tensor.staging_dtype
        return argument.to(VK_DTYPES.get(staging, argument.dtype)).to(VK_DTYPES[tensor.dtype])

    def _input_error(self, message: str) -> errors.InterpreterError:
        return errors.error(errors.BAD_INPUT, message, self._where())

    def _output(self, value_id: int, values: dict[int, Any]) -> Any:
        """An output in its staging dtype; None for a constant, which the delegate leaves alone."""
        if self.is_constant(value_id) and value_id not in values:
            return None
        try:
            result = self._value(value_id, values)
        except ValueError as failure:
            raise self._bad(f"output: {failure}") from failure
        if isinstance(result, torch.Tensor):
            staging = self.declared(value_id).staging_dtype
            return result.to(VK_DTYPES.get(staging, result.dtype))
        return result

    # ------------------------------------------------------------------ running

    def _run_op(self, index: int, values: dict[int, Any]) -> None:
        op, where = self._graph.ops[index], self._where(index)
        try:
            args = [self._value(value_id, values) for value_id in op.args[:-1]]
            state = self._states.setdefault(index, {})
            call = Call(
                op, where, self, self._contract, args, tuple(op.args[:-1]), op.args[-1], state
            )
            self._store(op.args[-1], OPS[op.name](call), values)
        except EtvkGuardError:
            raise
        except errors.FAILURES as failure:
            message = f"{op.name} failed: {failure}"
            raise errors.error(errors.OP_FAILED, message, where) from failure
        if op.name == "et_vk.prepack.default":
            # Done once: an op that writes such a tensor (a cache) leaves its mark for the next run.
            self._prepacked[op.args[-1]] = values[op.args[-1]]

    def _store(self, out: int, result: Result, values: dict[int, Any]) -> None:
        kind = self._graph.values[out].kind
        if kind == "symint":
            if not isinstance(result, int):
                raise ValueError("a whole number was to be computed")
            values[out] = result
        elif kind == "value_list":
            if not isinstance(result, (list, tuple)):
                raise ValueError("several results were to be computed")
            for value_id, item in zip(self.out_ids(out), result, strict=False):
                if item is not None:
                    values[value_id] = self._rounded(value_id, item)
        elif kind == "tensor" and isinstance(result, torch.Tensor):
            values[out] = self._rounded(out, result)
        elif result is not None:
            raise ValueError(f"a result for a value of kind {kind}")

    def _rounded(self, value_id: int, result: torch.Tensor) -> torch.Tensor:
        """The result in the dtype of its VkTensor. Its declared dims must have room for it."""
        tensor = self.declared(value_id)
        fits = result.dim() == len(tensor.dims) and all(
            actual <= bound for actual, bound in zip(result.shape, tensor.dims, strict=True)
        )
        if not fits:
            shape, bound = list(result.shape), list(tensor.dims)
            raise ValueError(f"the result is {shape}, value {value_id} is declared {bound}")
        return result.to(VK_DTYPES[tensor.dtype])
