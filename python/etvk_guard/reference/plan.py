# SPDX-License-Identifier: Apache-2.0
"""A method of a program: the instructions of its ExecutionPlan, on values of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from etvk_guard.pte import EtvkGuardError, Where
from etvk_guard.reference import errors, kernels
from etvk_guard.reference.call import Contract
from etvk_guard.reference.dtypes import SCALAR_TYPES, nbytes
from etvk_guard.reference.graph import MAX_TENSOR_BYTES, ConstantBytes, LoadedGraph

if TYPE_CHECKING:
    from etvk_guard.pte import Instruction, Method, PlanTensor, Program

# Instructions that one run may execute, each op of a delegate counted: a loop in a hostile file
# ends.
MAX_INSTRUCTIONS: Final = 250_000

_VULKAN: Final = "VulkanBackend"
_NUMBER_INPUTS: Final[dict[str, tuple[type, ...]]] = {
    "int": (int,),
    "bool": (bool,),
    "double": (int, float),
    "null": (type(None),),
}
_STATIC: Final = 0  # TensorShapeDynamism


class LoadedMethod:
    """A method that is ready to run. Buffers that it writes keep their values from run to run."""

    def __init__(
        self, program: Program, index: int, contract: Contract, data: ConstantBytes
    ) -> None:
        """Load it as the runtime does: every delegate, and every operator by name.

        `data` gives the bytes of a constant that is not in the program file, by its key or name.

        Raises:
            StockAbortError: with contract "stock", where a stock delegate throws while it loads.
            InterpreterError: a backend, an op or an operator that is not supported here.
        """
        self._program = program
        self._index = index
        self._data = data
        self._method: Method = program.methods[index]
        self._where = Where(method=self._method.name)
        self._kernels = [self._kernel(name, overload) for name, overload in self._method.operators]
        self._graphs = [
            self._delegate(number, contract, data) for number in range(len(self._method.delegates))
        ]
        self._lasting: dict[int, torch.Tensor] = {}

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Execute on inputs in order (tensors and numbers); the outputs in order.

        Raises:
            InterpreterError: the inputs do not fit (EG403), an operator fails (EG406), or there is
                no end to the instructions (EG405).
        """
        method = self._method
        if len(inputs) != len(method.inputs):
            message = f"{method.name} takes {len(method.inputs)} inputs, {len(inputs)} are given"
            raise errors.error(errors.BAD_INPUT, message, self._where)
        values: dict[int, Any] = {}
        for position, (value_id, given) in enumerate(zip(method.inputs, inputs, strict=True)):
            values[value_id] = self._input(position, value_id, given)
        self._execute(values)
        return [self._value(value_id, values) for value_id in method.outputs]

    # ------------------------------------------------------------------ loading

    def _kernel(self, name: str, overload: str) -> kernels.Kernel:
        kernel = kernels.find(name, overload)
        if kernel is None:
            operator = f"{name}.{overload}" if overload else name
            message = f"the reference interpreter lacks the CPU operator {operator}"
            where = Where(method=self._method.name, op=operator)
            raise errors.error(errors.UNSUPPORTED_OP, message, where)
        return kernel

    def _delegate(self, number: int, contract: Contract, data: ConstantBytes) -> LoadedGraph:
        delegate = self._method.delegates[number]
        if delegate.backend != _VULKAN or delegate.graph is None:
            message = f"a delegate of the backend {delegate.backend!r}; only {_VULKAN} is supported"
            where = Where(method=self._method.name, delegate=number)
            raise errors.error(errors.UNSUPPORTED_BACKEND, message, where)
        return LoadedGraph(delegate, contract, data)

    # ------------------------------------------------------------------ values

    def _input(self, position: int, value_id: int, given: Any) -> Any:
        value = self._method.values[value_id]
        if value.kind != "tensor":
            return self._number_input(position, value.kind, given)
        if not isinstance(given, torch.Tensor):
            raise self._bad_input(position, f"a tensor is wanted, not {type(given).__name__}")
        tensor: PlanTensor = value.value
        dtype = SCALAR_TYPES.get(tensor.dtype)
        if given.dtype != dtype:
            raise self._bad_input(position, f"{dtype} is wanted, not {given.dtype}")
        bounds, shape = tuple(tensor.sizes), tuple(given.shape)
        if tensor.dynamism == _STATIC:
            fits = shape == bounds
        else:
            fits = len(shape) == len(bounds) and all(
                actual <= bound for actual, bound in zip(shape, bounds, strict=True)
            )
        if not fits:
            raise self._bad_input(position, f"shape {list(bounds)} is wanted, not {list(shape)}")
        return given.detach().contiguous().clone()

    def _number_input(self, position: int, kind: str, given: Any) -> Any:
        if not isinstance(given, _NUMBER_INPUTS.get(kind, ())):
            raise self._bad_input(position, f"a value of kind {kind} is wanted, not {given!r}")
        return given

    def _bad_input(self, position: int, message: str) -> errors.InterpreterError:
        return errors.error(errors.BAD_INPUT, f"input {position}: {message}", self._where)

    def _value(self, value_id: int, values: dict[int, Any], depth: int = 0) -> Any:
        """A value as Python has it. Lists of whole numbers, and of tensors, name other values."""
        if value_id in values:
            return values[value_id]
        value = self._method.values[value_id]
        if value.kind in ("int_list", "tensor_list", "optional_tensor_list"):
            if depth:
                raise ValueError("a list of values holds another one")
            return [
                None if item < 0 else self._value(item, values, depth + 1) for item in value.value
            ]
        if value.kind == "tensor":
            values[value_id] = self._tensor(value_id, value.value)
            return values[value_id]
        return list(value.value) if value.kind.endswith("_list") else value.value

    def _tensor(self, value_id: int, tensor: PlanTensor) -> torch.Tensor:
        """A constant, or memory: what it starts with, or zeros. It lasts."""
        if value_id not in self._lasting:
            dtype = SCALAR_TYPES.get(tensor.dtype)
            size = nbytes(dtype, tuple(tensor.sizes)) if dtype else 0
            if dtype is None or size > MAX_TENSOR_BYTES:
                message = f"value {value_id}: dtype {tensor.dtype}, sizes {list(tensor.sizes)}"
                raise errors.error(errors.BAD_PROGRAM, message, self._where)
            raw = self._initial(tensor, size)
            flat = torch.frombuffer(raw, dtype=dtype) if size else torch.empty(0, dtype=dtype)
            self._lasting[value_id] = flat.reshape(tuple(tensor.sizes))
        return self._lasting[value_id]

    def _initial(self, tensor: PlanTensor, size: int) -> bytearray:
        if tensor.external and tensor.fqn is not None:
            outside = self._data(tensor.fqn)
            if outside is None:
                outside = self._program.named_bytes(tensor.fqn)
            if outside is None or len(outside) < size:
                raise errors.missing_data(tensor.fqn, self._where)
            return bytearray(outside[:size])
        if tensor.data_buffer_idx > 0:
            program = self._program
            read = program.initial_bytes if tensor.has_allocation else program.constant_bytes
            return bytearray(read(self._index, tensor.data_buffer_idx, size))
        return bytearray(size)

    # ------------------------------------------------------------------ running

    def _execute(self, values: dict[int, Any]) -> None:
        instructions = self._method.instructions
        at = 0
        left = MAX_INSTRUCTIONS
        while at != len(instructions):
            if not 0 <= at < len(instructions):
                message = f"a jump to instruction {at} of {len(instructions)}"
                raise errors.error(errors.BAD_PROGRAM, message, self._where)
            left -= self._cost(instructions[at])
            if left < 0:
                message = f"more than {MAX_INSTRUCTIONS} instructions were executed"
                raise errors.error(errors.BUDGET, message, self._where)
            try:
                at = self._step(at, instructions[at], values)
            except EtvkGuardError:
                raise
            except errors.FAILURES as failure:
                message = f"instruction {at} ({instructions[at].kind}) failed: {failure}"
                raise errors.error(errors.OP_FAILED, message, self._where) from failure

    def _cost(self, instruction: Instruction) -> int:
        delegate = instruction.kind == "delegate"
        return 1 + (self._graphs[instruction.index].op_count if delegate else 0)

    def _step(self, at: int, instruction: Instruction, values: dict[int, Any]) -> int:
        """Execute one instruction; the index of the next."""
        return _STEPS[instruction.kind](self, at, instruction, values)

    def _step_kernel(self, at: int, instruction: Instruction, values: dict[int, Any]) -> int:
        kernel = self._kernels[instruction.index]
        read = instruction.args[: kernel.inputs]
        written = instruction.args[kernel.inputs : kernel.inputs + kernel.outputs]
        args = [self._value(value_id, values) for value_id in read]
        dtypes = [self._dtype(value_id) for value_id in written]
        name = ".".join(self._method.operators[instruction.index])
        try:
            results = kernel.function(args, dtypes)
        except errors.FAILURES as failure:
            where = Where(method=self._method.name, op=name)
            raise errors.error(errors.OP_FAILED, f"{name} failed: {failure}", where) from failure
        for value_id, result in zip(written, results, strict=True):
            self._assign(value_id, result, values)
        return at + 1

    def _dtype(self, value_id: int) -> Any:
        """The dtype of a tensor value, a list of them for a list, None for anything else."""
        value = self._method.values[value_id]
        if value.kind in ("tensor_list", "optional_tensor_list"):
            return [self._dtype(item) for item in value.value]
        return SCALAR_TYPES.get(value.value.dtype) if value.kind == "tensor" else None

    def _assign(self, value_id: int, result: Any, values: dict[int, Any]) -> None:
        """Bind a result, or the items of a list of results, to the values that stand for them."""
        value = self._method.values[value_id]
        if value.kind in ("tensor_list", "optional_tensor_list"):
            for item, part in zip(value.value, result, strict=True):
                values[item] = part
        else:
            values[value_id] = result

    def _step_delegate(self, at: int, instruction: Instruction, values: dict[int, Any]) -> int:
        graph = self._graphs[instruction.index]
        ins = graph.input_count
        given, taken = instruction.args[:ins], instruction.args[ins:]
        results = graph.run([self._value(value_id, values) for value_id in given], len(taken))
        for value_id, result in zip(taken, results, strict=True):
            if result is not None:
                values[value_id] = self._delivered(value_id, result)
        return at + 1

    def _delivered(self, value_id: int, result: Any) -> Any:
        """A delegate's output in the dtype of the plan's value (int32 back to int64, and so on)."""
        value = self._method.values[value_id]
        if value.kind != "tensor":
            return result.item() if torch.is_tensor(result) else result
        dtype = SCALAR_TYPES.get(value.value.dtype)
        return torch.as_tensor(result).to(dtype)

    def _step_move(self, at: int, instruction: Instruction, values: dict[int, Any]) -> int:
        source, target = instruction.args
        values[target] = self._value(source, values)
        return at + 1

    def _step_jump_false(self, at: int, instruction: Instruction, values: dict[int, Any]) -> int:
        condition, target = instruction.args
        value = self._value(condition, values)
        return at + 1 if bool(value) else target

    def _step_free(self, at: int, instruction: Instruction, values: dict[int, Any]) -> int:
        values.pop(instruction.args[0], None)
        return at + 1


_Step = Callable[[LoadedMethod, int, "Instruction", "dict[int, Any]"], int]

_STEPS: Final[dict[str, _Step]] = {
    "kernel": LoadedMethod._step_kernel,
    "delegate": LoadedMethod._step_delegate,
    "move": LoadedMethod._step_move,
    "jump_false": LoadedMethod._step_jump_false,
    "free": LoadedMethod._step_free,
}
