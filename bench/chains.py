# SPDX-License-Identifier: Apache-2.0
"""Programs that are a chain of norms, as the stock partitioner lowers them, for kernels_chains.py.

They are written with executorch's own serializers: lowering a chain takes minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from executorch.backends.vulkan.serialization import vulkan_graph_schema as vk
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import serialize_vulkan_graph
from executorch.exir import schema
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir.scalar_type import ScalarType
from torch import Tensor

EPS = 1e-6
DTYPES = {"float": torch.float32, "half": torch.float16}
VK_DTYPES = {"float": vk.VkDataType.FLOAT32, "half": vk.VkDataType.FLOAT16}
SCALAR_TYPES = {"float": ScalarType.FLOAT, "half": ScalarType.HALF}
STORAGES = {"texture3d": vk.VkStorageType.TEXTURE_3D, "buffer": vk.VkStorageType.BUFFER}


@dataclass(frozen=True)
class Chain:
    """`length` norms of [rows, width] in a row, each with the same weight of [width].

    Input and output are [1, width]: one row, which a constant column spreads over the rows first,
    so that copying them does not hide the norms. A weight that is no constant is a second input.
    """

    rows: int
    width: int
    dtype: str
    storage: str
    constant: bool
    length: int

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.width}_{self.dtype}_{self.storage}_{self.length}"

    def _random(self, *shape: int) -> Tensor:
        generator = torch.Generator().manual_seed(sum(shape))
        return (torch.rand(*shape, generator=generator) * 2 - 1).to(DTYPES[self.dtype])

    def x(self) -> Tensor:
        return self._random(1, self.width)

    def weight(self) -> Tensor:
        """Near 1: with others a long chain has only zeros left, which are faster to move."""
        return self._random(self.width) * 0.01 + 1

    def column(self) -> Tensor:
        return self._random(self.rows, 1)

    def inputs(self) -> tuple[Tensor, ...]:
        return (self.x(),) if self.constant else (self.x(), self.weight())

    def expected(self) -> Tensor:
        """The first row of the result, of the same arithmetic in torch."""
        x = self.x() + self.column()[:1] if self.rows > 1 else self.x()
        for _ in range(self.length):
            x = torch.nn.functional.rms_norm(x, (self.width,), self.weight(), EPS)
        return x


class _Graph:
    """A VkGraph that grows."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.values: list[vk.VkValue] = []
        self.ops: list[vk.OperatorCall] = []
        self.constants: list[Tensor] = []

    def value(self, value: object) -> int:
        self.values.append(vk.VkValue(value))
        return len(self.values) - 1

    def tensor(self, dims: list[int], memory: int = -1, constant: Tensor | None = None) -> int:
        if constant is not None:
            self.constants.append(constant)
        return self.value(
            vk.VkTensor(
                datatype=VK_DTYPES[self.chain.dtype],
                dims=dims,
                constant_id=-1 if constant is None else len(self.constants) - 1,
                mem_obj_id=memory,
                storage_type=STORAGES[self.chain.storage],
                memory_layout=vk.VkMemoryLayout.TENSOR_WIDTH_PACKED,
            )
        )

    def op(self, name: str, *args: int) -> None:
        self.ops.append(vk.OperatorCall(len(self.ops), name, list(args)))

    def first_row(self, x: int) -> int:
        """A slice of what has the rows of the norms."""
        out = self.tensor([1, self.chain.width])
        numbers = [self.value(vk.Int(n)) for n in (0, 0, 1, 1)]
        self.op("aten.slice_copy.Tensor", x, *numbers, out)
        return out


def blob(chain: Chain) -> bytes:
    """The delegate's Vulkan graph."""
    graph, dims = _Graph(chain), [chain.rows, chain.width]
    first = x = graph.tensor([1, chain.width])
    weight = graph.tensor([chain.width], constant=chain.weight() if chain.constant else None)
    eps = graph.value(vk.Double(EPS))
    if chain.rows > 1:
        x = graph.tensor(dims, 0)
        column = graph.tensor([chain.rows, 1], constant=chain.column())
        graph.op("aten.add.Tensor", first, column, graph.value(vk.Int(1)), x)
    for step in range(chain.length):
        out = graph.tensor(dims, (step + 1) % 2)
        graph.op("et_vk.rms_norm.default", x, weight, eps, out)
        x = out
    last = graph.first_row(x) if chain.rows > 1 else x
    inputs = [first] if chain.constant else [first, weight]
    made = vk.VkGraph("0", graph.ops, graph.values, inputs, [last], [], [])
    return serialize_vulkan_graph(made, graph.constants, [])


def _planned(chain: Chain, dims: list[int], offset: int) -> schema.EValue:
    return schema.EValue(
        schema.Tensor(
            scalar_type=SCALAR_TYPES[chain.dtype],
            storage_offset=0,
            sizes=dims,
            dim_order=list(range(len(dims))),
            requires_grad=False,
            layout=0,
            data_buffer_idx=0,
            allocation_info=schema.AllocationDetails(1, offset, 0),
            shape_dynamism=schema.TensorShapeDynamism.STATIC,
        )
    )


def program(chain: Chain) -> bytes:
    """The `.pte`: one method, "forward", which is one call of the delegate."""
    shapes = [[1, chain.width]] + ([] if chain.constant else [[chain.width]]) + [[1, chain.width]]
    room = -(-chain.width * 4 // 16) * 16
    values = [_planned(chain, dims, i * room) for i, dims in enumerate(shapes)]
    indices = list(range(len(shapes)))
    call = schema.Instruction(schema.DelegateCall(delegate_index=0, args=indices))
    reference = schema.BackendDelegateDataReference(schema.DataLocation.INLINE, 0)
    plan = schema.ExecutionPlan(
        name="forward",
        container_meta_type=schema.ContainerMetadata("", ""),
        values=values,
        inputs=indices[:-1],
        outputs=indices[-1:],
        chains=[schema.Chain(inputs=[], outputs=[], instructions=[call], stacktrace=None)],
        operators=[],
        delegates=[schema.BackendDelegate("VulkanBackend", reference, compile_specs=[])],
        non_const_buffer_sizes=[0, len(shapes) * room],
        non_const_buffer_device=None,
    )
    made = schema.Program(
        version=0,
        execution_plan=[plan],
        constant_buffer=[schema.Buffer(storage=b"")],
        backend_delegate_data=[schema.BackendDelegateInlineData(data=blob(chain))],
        segments=[],
        constant_segment=schema.SubsegmentOffsets(0, []),
    )
    return bytes(serialize_pte_binary(PTEFile(program=made), extract_delegate_segments=True))
