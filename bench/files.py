# SPDX-License-Identifier: Apache-2.0
"""Program files of any size for the benchmarks.

A chain of ops, of which the first are `et_vk.rms_norm` with a run-time weight, is written with
executorch's own serializers into one Vulkan delegate; the weights are one named-data segment at the
end of the file, which is stretched to its full size as a hole or as bytes.
"""

from __future__ import annotations

import struct
from pathlib import Path

from executorch.backends.vulkan.serialization import vulkan_graph_schema as vk
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import serialize_vulkan_graph
from executorch.exir import schema
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary

D = 64
# The length of the weights' segment before it is stretched: found again by its value.
PLACEHOLDER = 1_234_567
HEADER_SEGMENT_SIZE = slice(32, 40)  # Program's extended header: segment data size


def _tensor(mem_obj_id: int) -> vk.VkValue:
    return vk.VkValue(
        vk.VkTensor(
            datatype=vk.VkDataType.FLOAT32,
            dims=[1, 8, D],
            constant_id=-1,
            mem_obj_id=mem_obj_id,
            storage_type=vk.VkStorageType.BUFFER,
            memory_layout=vk.VkMemoryLayout.TENSOR_WIDTH_PACKED,
        )
    )


def graph(norms: int, multiplies: int = 0) -> bytes:
    """A Vulkan blob: RMS norms in a row, each with a run-time weight, then products with it."""
    ops = norms + multiplies
    values = [_tensor(-1), _tensor(-1), vk.VkValue(vk.Double(1e-6))]
    values += [_tensor(2 + i % 2) for i in range(ops)]
    chain = []
    for i in range(ops):
        x, out = 0 if i == 0 else 2 + i, 3 + i
        name = "et_vk.rms_norm.default" if i < norms else "aten.mul.Tensor"
        chain.append(vk.OperatorCall(i, name, [x, 1, 2, out] if i < norms else [x, 1, out]))
    made = vk.VkGraph("0", chain, values, [0, 1], [2 + ops], [], [])
    return serialize_vulkan_graph(made, [], [])


def _plan(backend: str) -> schema.ExecutionPlan:
    return schema.ExecutionPlan(
        name="forward",
        container_meta_type=schema.ContainerMetadata("", ""),
        values=[],
        inputs=[],
        outputs=[],
        chains=[schema.Chain(inputs=[], outputs=[], instructions=[], stacktrace=None)],
        operators=[],
        delegates=[
            schema.BackendDelegate(
                id=backend,
                processed=schema.BackendDelegateDataReference(schema.DataLocation.INLINE, 0),
                compile_specs=[],
            )
        ],
        non_const_buffer_sizes=[0],
        non_const_buffer_device=None,
    )


def write(path: Path, norms: int, weight_bytes: int, *, sparse: bool, multiplies: int = 0) -> None:
    """Write faulty norms, sound multiplies and weights, the weights as a hole if `sparse`."""
    program = schema.Program(
        version=0,
        execution_plan=[_plan("VulkanBackend")],
        constant_buffer=[schema.Buffer(storage=b"")],
        backend_delegate_data=[schema.BackendDelegateInlineData(data=graph(norms, multiplies))],
        segments=[],
        constant_segment=schema.SubsegmentOffsets(0, []),
    )
    store = NamedDataStore()
    store.add_named_data("weights", b"\x7f" * PLACEHOLDER, alignment=16)
    file = PTEFile(program=program, named_data=store.get_named_data_store_output())
    data = bytearray(bytes(serialize_pte_binary(file, extract_delegate_segments=True)))
    _stretch(data, weight_bytes)
    body = len(data) - PLACEHOLDER
    with open(path, "wb") as out:
        out.write(data[:body])
        if sparse:
            out.truncate(body + weight_bytes)
            return
        block = bytes(range(256)) * 4096
        for start in range(0, weight_bytes, len(block)):
            out.write(block[: weight_bytes - start])


def _stretch(data: bytearray, weight_bytes: int) -> None:
    """Give the last segment its full size in the program and in the extended header."""
    old = struct.pack("<Q", PLACEHOLDER)
    at = data.find(old)
    if at < 0 or data.find(old, at + 1) >= 0:
        raise RuntimeError("the weights' segment was not found exactly once")
    data[at : at + 8] = struct.pack("<Q", weight_bytes)
    (total,) = struct.unpack("<Q", data[HEADER_SEGMENT_SIZE])
    data[HEADER_SEGMENT_SIZE] = struct.pack("<Q", total - PLACEHOLDER + weight_bytes)
