# SPDX-License-Identifier: Apache-2.0
"""Reading and editing the edge-dialect graphs of an exported program.

Nothing here knows a rule: these are the questions every rule asks of a node, and an editor that
keeps a node's debug handle, stack trace and module stack when it is replaced.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any, cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node

__all__ = [
    "CAST_OPS",
    "RULE_KEY",
    "GraphEditor",
    "arg",
    "cast_dtype",
    "dims",
    "dtype_of",
    "edge",
    "is_cast",
    "is_op",
    "module_path",
    "numel",
    "op_name",
    "same_dim",
    "same_shape",
    "shape_of",
    "static",
    "strip_upcasts",
    "value",
]

edge = exir_ops.edge.aten
"""The aten ops of the edge dialect."""

RULE_KEY = "etvk_guard_rule"
"""`node.meta` key under which a node that a rule made carries the rule's name."""

CAST_OPS = frozenset(
    {
        exir_ops.edge.aten._to_copy.default,
        exir_ops.edge.dim_order_ops._to_dim_order_copy.default,
    }
)
"""The two ops with which the edge dialect changes a dtype."""

_FLOAT_BITS = {torch.float16: 16, torch.float32: 32}


def is_op(node: object, *targets: object) -> bool:
    """Whether `node` is a call of one of `targets`."""
    return isinstance(node, Node) and node.op == "call_function" and node.target in targets


def op_name(node: Node) -> str:
    """The op's name as a VkGraph has it, such as "aten.mul.Tensor"; "" if it is no call."""
    return getattr(node.target, "__name__", str(node.target)) if node.op == "call_function" else ""


def value(node: object) -> torch.Tensor | None:
    """The fake tensor of a node that makes one tensor, else None."""
    found = node.meta.get("val") if isinstance(node, Node) else None
    return found if isinstance(found, torch.Tensor) else None


def dtype_of(node: object) -> torch.dtype | None:
    """The dtype of a node that makes one tensor, else None."""
    found = value(node)
    return None if found is None else found.dtype


def shape_of(node: object) -> tuple[int | torch.SymInt, ...] | None:
    """The sizes of a node that makes one tensor, else None. A dynamic size is a SymInt."""
    found = value(node)
    return None if found is None else tuple(found.shape)


def numel(node: object) -> int:
    """How many elements a tensor has; 0 if that is not known when lowering."""
    shape = shape_of(node)
    if shape is None or not all(isinstance(size, int) for size in shape):
        return 0
    return prod(cast("tuple[int, ...]", shape))


def static(size: int | torch.SymInt) -> bool:
    """Whether a size is known when lowering."""
    return isinstance(size, int)


def same_dim(a: int | torch.SymInt, b: int | torch.SymInt) -> bool:
    """Whether two sizes are equal for every input, without adding a guard on a symbol."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return bool(a.node.expr == b.node.expr)


def same_shape(a: object, b: object) -> bool:
    """Whether two tensors have the same sizes for every input."""
    first, second = shape_of(a), shape_of(b)
    if first is None or second is None or len(first) != len(second):
        return False
    return all(map(same_dim, first, second))


def dims(node: object) -> str:
    """Sizes and dtype for a message, such as "float32[1, s0, 64]"."""
    found = value(node)
    if found is None:
        return "?"
    return f"{str(found.dtype).removeprefix('torch.')}[{', '.join(map(str, found.shape))}]"


def arg(node: Node, index: int, name: str, default: Any = None) -> Any:
    """An argument of a call, whether it was given by position or by name."""
    if index < len(node.args):
        return node.args[index]
    return node.kwargs.get(name, default)


def is_cast(node: object) -> bool:
    """Whether a node changes only the dtype of a tensor: not its device, nor its dim order."""
    if not (isinstance(node, Node) and is_op(node, *CAST_OPS)):
        return False
    found = value(node)
    order = node.kwargs.get("dim_order")
    return found is not None and (
        order is None or list(cast("list[int]", order)) == list(range(found.dim()))
    )


def cast_dtype(node: Node) -> tuple[torch.dtype | None, torch.dtype | None]:
    """The dtypes that a cast reads and makes."""
    return dtype_of(node.args[0]), dtype_of(node)


def strip_upcasts(node: Node) -> tuple[Node, list[Node]]:
    """Walk back over casts that lose nothing (half to float, or no change).

    Returns the first tensor that is no such cast, and the casts passed, nearest first.
    """
    passed: list[Node] = []
    while is_cast(node):
        source, result = cast_dtype(node)
        if _FLOAT_BITS.get(source, 99) > _FLOAT_BITS.get(result, 0):  # type: ignore[arg-type]
            break
        passed.append(node)
        node = cast("Node", node.args[0])
    return node, passed


def module_path(node: Node) -> str:
    """The path of the module that a node comes from, such as "layers.0.norm"; "" if unknown."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [entry[0] for entry in stack.values() if isinstance(entry, tuple) and entry]
    path = str(paths[-1]) if paths else ""
    for prefix in ("L['self'].", "L['self']"):
        path = path.removeprefix(prefix)
    return path


class GraphEditor:
    """Adds nodes and constants to one exported program, in place.

    Args:
        program: a program in the edge dialect, with real weights.
    """

    def __init__(self, program: ExportedProgram) -> None:
        """Edit `program`."""
        self.program = program
        self.graph = program.graph_module.graph
        self._cache: dict[tuple[object, ...], Node] = {}

    def call(
        self,
        target: Callable[..., Any],
        args: Sequence[Any],
        like: Node,
        rule: str,
        kwargs: dict[str, Any] | None = None,
    ) -> Node:
        """Insert a call at the current insertion point; `like` is the node whose place it takes.

        Its value is worked out with fake tensors; debug handle, stack trace and module stack are
        those of `like`.
        """
        node: Node = self.graph.call_function(target, tuple(args), kwargs or {})
        node.meta = {k: v for k, v in like.meta.items() if k not in ("val", "tensor_meta", "spec")}
        node.meta[RULE_KEY] = rule
        fake_args, fake_kwargs = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda n: n.meta["val"]
        )
        # Composite ops need both to work with symbolic sizes.
        with self._mode(), enable_python_dispatcher(), torch.no_grad():
            node.meta["val"] = target(*fake_args, **fake_kwargs)
        return node

    def cast(self, node: Node, dtype: torch.dtype, like: Node, rule: str) -> Node:
        """Insert a cast, by the op that the delegate runs on every device."""
        order = list(range(len(shape_of(node) or ())))
        kwargs = {"dtype": dtype, "dim_order": order}
        op = exir_ops.edge.dim_order_ops._to_dim_order_copy.default
        return self.call(op, (node,), like, rule, kwargs)

    def getitem(self, node: Node, index: int, like: Node, rule: str) -> Node:
        """Insert `node[index]`, for an op with several results."""
        return self.call(operator.getitem, (node, index), like, rule)

    def replace(self, old: Node, new: Node) -> None:
        """Let `new` take the place of `old` everywhere, the program's outputs included."""
        old.replace_all_uses_with(new)
        for spec in self.program.graph_signature.output_specs:
            if getattr(spec.arg, "name", None) == old.name:
                spec.arg = TensorArgument(new.name)

    def constant(
        self, data: torch.Tensor, name: str, key: tuple[object, ...] | None = None
    ) -> Node:
        """A new lifted constant that holds `data`. Equal keys share one constant."""
        if key is not None and key in self._cache:
            return self._cache[key]
        data = data.detach().contiguous()
        anchor = self._first_user_input()
        with self.graph.inserting_before(anchor):
            node: Node = self.graph.placeholder(f"etvk_guard_{name}")
        target = node.name  # Made unique by the graph.
        node.target = target
        node.meta["val"] = self._fake(data)
        self.program.constants[target] = data
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target, None)
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        self.program.graph_signature.input_specs.insert(placeholders.index(node), spec)
        if key is not None:
            self._cache[key] = node
        return node

    def filled(self, size: int, fill: float, dtype: torch.dtype) -> Node:
        """A constant `[size]` of `fill`, one for each size, value and dtype."""
        name = "ones" if fill == 1.0 else "zeros"
        data = torch.full((size,), fill, dtype=dtype)
        return self.constant(data, f"{name}_{size}", ("filled", size, fill, dtype))

    def finish(self) -> None:
        """Drop what became dead, constants that nothing uses any more included."""
        self.graph.eliminate_dead_code()
        signature = self.program.graph_signature
        constants = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        written = set(signature.buffers_to_mutate.values())
        dead = [
            node
            for node in self.graph.nodes
            if node.op == "placeholder"
            and not node.users
            and node.name in constants
            and constants[node.name] not in written
        ]
        self._drop_placeholders(dead)
        self.program.graph_module.recompile()

    def _drop_placeholders(self, dead: Iterable[Node]) -> None:
        names = {node.name for node in dead}
        specs = self.program.graph_signature.input_specs
        specs[:] = [spec for spec in specs if getattr(spec.arg, "name", None) not in names]
        for node in dead:
            self.graph.erase_node(node)

    def _first_user_input(self) -> Node:
        inputs = set(self.program.graph_signature.user_inputs)
        nodes = list(self.graph.nodes)
        for node in nodes:
            if node.op != "placeholder" or node.name in inputs:
                return cast("Node", node)
        raise RuntimeError("the graph has neither an input nor an op")

    def _fake(self, data: torch.Tensor) -> torch.Tensor:
        mode = self._mode()
        if isinstance(mode, FakeTensorMode):
            return mode.from_tensor(data, static_shapes=True)
        return data

    def _mode(self) -> FakeTensorMode | nullcontext[None]:
        """The mode of the program's fake tensors; none if its values are real."""
        for node in self.graph.nodes:
            mode = getattr(node.meta.get("val"), "fake_mode", None)
            if isinstance(mode, FakeTensorMode):
                return mode
        return nullcontext()
