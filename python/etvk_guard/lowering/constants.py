# SPDX-License-Identifier: Apache-2.0
"""Which values of a program are known before it runs, and what they are.

A value is known when it is a parameter, a buffer that the program never writes, a lifted constant,
or computed from such values alone by ops without side effects. ExecuTorch's `constant_prop_pass`
replaces every such value in a program; here only those that a rule asks for are evaluated, so that
no other constant grows (an expanded table). A constant that is quantized and dequantized is known
too, with its rounding, unless stock fuses the pair into a quantized op.
"""

from __future__ import annotations

import operator
from collections.abc import Container
from typing import Any, cast

import torch
from executorch.exir.dialects._ops import ops as exir_ops
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils import _pytree as pytree

from etvk_guard.lowering.graph import op_name

__all__ = ["Constants"]

_OWN_NAMESPACE = "et_vk."


class Constants:
    """The known values of one program.

    Made while partitioning, when the weights are fake tensors, it can say what is known; made while
    preprocessing, it can also say the values.
    """

    def __init__(self, program: ExportedProgram, fused: Container[Node] = ()) -> None:
        """Read a program, in the time of one pass over its graph.

        Args:
            program: a program in the edge dialect.
            fused: calls that stock fuses with others, whose results there will not be.
        """
        signature = program.graph_signature
        self._program = program
        self._parameters = dict(signature.inputs_to_parameters)
        self._buffers = dict(signature.inputs_to_buffers)
        self._lifted = dict(signature.inputs_to_lifted_tensor_constants)
        self._written = set(signature.buffers_to_mutate.values())
        self._values: dict[Node, Any] = {}
        self._known: set[Node] = set()
        for node in program.graph_module.graph.nodes:
            if self.leaf(node) or (node not in fused and self._computed(node)):
                self._known.add(node)

    def leaf(self, node: object) -> bool:
        """Whether a node is itself a constant tensor: what becomes a serialized tensor."""
        if not isinstance(node, Node):
            return False
        if node.op == "get_attr":
            return isinstance(
                getattr(node.graph.owning_module, str(node.target), None), torch.Tensor
            )
        if node.op != "placeholder":
            return False
        name = node.name
        return name in self._parameters or name in self._lifted or self._is_fixed_buffer(name)

    def mutable(self, node: object) -> bool:
        """Whether a node is a buffer that the program writes."""
        return (
            isinstance(node, Node)
            and self._buffers.get(node.name) in self._written
            and (node.op == "placeholder")
        )

    def known(self, node: object) -> bool:
        """Whether a node's value is known when lowering, itself or by evaluation."""
        return isinstance(node, Node) and node in self._known

    def computed(self, node: object) -> bool:
        """Whether a node is computed, and from constants only."""
        return self.known(node) and not self.leaf(node)

    def chain(self, node: Node) -> list[Node]:
        """The calls that compute a known value, in any order; empty for a leaf."""
        found: dict[Node, None] = {}
        todo = [node]
        while todo:
            current = todo.pop()
            if current.op == "call_function" and current not in found:
                found[current] = None
                todo.extend(current.all_input_nodes)
        return list(found)

    def target(self, node: Node) -> str:
        """The name of a constant in the model ("layers.0.norm.weight"), or the node's own."""
        for names in (self._parameters, self._buffers, self._lifted):
            if node.name in names:
                return str(names[node.name])
        return node.name

    def culprit(self, node: Node) -> str:
        """Why a value is not known, in words: the input or written buffer that it comes from."""
        seen: set[Node] = set()
        current = node
        while current not in seen and current not in self._known:
            seen.add(current)
            unknown = [n for n in current.all_input_nodes if n not in self._known]
            if not unknown:
                break
            current = unknown[0]
        if self.mutable(current):
            return f"buffer `{self.target(current)}`, which the program writes"
        if current.op == "placeholder":
            return f"input `{current.name}`"
        return f"`{op_name(current) or current.name}`"

    def evaluate(self, node: Node) -> torch.Tensor:
        """The value of a known node. Needs real weights: raises ValueError where they are fake."""
        order = {n: i for i, n in enumerate(node.graph.nodes)}
        with torch.no_grad():
            for step in sorted(self.chain(node), key=order.__getitem__):
                if step not in self._values:
                    self._values[step] = self._run(step)
            result = self._read(node)
        if not isinstance(result, torch.Tensor):
            raise ValueError(f"{node.name} is not one tensor")
        return result

    def _run(self, node: Node) -> Any:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), self._read)
        return cast("Any", node.target)(*args, **kwargs)

    def _read(self, node: Node) -> Any:
        if node not in self._values:
            self._values[node] = self._leaf_value(node)
        return self._values[node]

    def _leaf_value(self, node: Node) -> torch.Tensor:
        program = self._program
        if node.op == "get_attr":
            found = getattr(node.graph.owning_module, str(node.target))
        else:
            target = self.target(node)
            found = program.state_dict.get(target)
            if found is None:
                found = program.constants.get(target)
        if isinstance(found, torch._subclasses.FakeTensor) or found is None:
            # A scalar that lowering itself lifted keeps its value beside the fake tensor.
            found = getattr(node.meta.get("val"), "constant", None)
        if not isinstance(found, torch.Tensor) or isinstance(found, torch._subclasses.FakeTensor):
            raise ValueError(f"the value of {node.name} is not at hand")
        return found.detach()

    def _is_fixed_buffer(self, name: str) -> bool:
        return name in self._buffers and self._buffers[name] not in self._written

    def _computed(self, node: Node) -> bool:
        if node.op != "call_function" or not _pure(node):
            return False
        if not all(n in self._known for n in node.all_input_nodes):
            return False
        return all(
            isinstance(v, (torch.Tensor, type(None)))
            for v in pytree.tree_leaves(node.meta.get("val"))
        )


def _pure(node: Node) -> bool:
    """Whether a call always gives the same result: no random numbers, no writes, no symbols."""
    if node.target is operator.getitem:
        return True
    name = op_name(node)
    if name.startswith(_OWN_NAMESPACE) or node.target is exir_ops.edge.aten.empty.memory_format:
        return False
    op = getattr(node.target, "_op", node.target)
    if not isinstance(op, torch._ops.OpOverload) or op._schema.is_mutable:
        return False
    if torch.Tag.nondeterministic_seeded in op.tags:
        return False
    return not any(
        isinstance(leaf, torch.SymInt) for leaf in pytree.tree_leaves((node.args, node.kwargs))
    )
