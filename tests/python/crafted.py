# SPDX-License-Identifier: Apache-2.0
"""Vulkan graphs that no exporter writes, in a file that is sound otherwise."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import flatbuffers

from etvk_guard import open_program

DATA = Path(__file__).parents[1] / "data"
REAL = sorted((DATA / "releases/1.5.1").glob("*.pte"))
SMALL = DATA / "releases/1.5.1/runtime_b1d.pte"  # one method, one delegate, one segment

NULL, INT, DOUBLE, TENSOR, VALUE_LIST, STRING = 1, 2, 3, 5, 9, 10  # GraphTypes

Fill = Callable[[flatbuffers.Builder], int]


def table(builder: Any, fields: dict[int, tuple[str, Any]]) -> int:
    """A table of fields by id: the name of a `Prepend...Slot` method, and the value."""
    builder.StartObject(max(fields, default=-1) + 1)
    for number, (kind, value) in fields.items():
        method = getattr(builder, f"Prepend{kind}Slot")
        method(number, value, 0)
    return int(builder.EndObject())


def vector(builder: Any, items: Sequence[int], kind: str = "Int32") -> int:
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        getattr(builder, "Prepend" + {"Offset": "UOffsetTRelative"}.get(kind, kind))(item)
    return int(builder.EndVector())


def value(builder: Any, kind: int, content: int) -> int:
    return table(builder, {0: ("Uint8", kind), 1: ("UOffsetTRelative", content)})


def tensor(builder: Any, *dims: int) -> int:
    shape = vector(builder, dims, "Uint32")
    fields = {0: ("Int8", 5), 1: ("UOffsetTRelative", shape)}
    fields |= {2: ("Int32", -1), 3: ("Int32", -1), 4: ("Uint8", 1)}
    return value(builder, TENSOR, table(builder, fields))


def value_list(builder: Any, items: Sequence[int]) -> int:
    content = table(builder, {0: ("UOffsetTRelative", vector(builder, items))})
    return value(builder, VALUE_LIST, content)


def op(builder: Any, name: str | bytes, args: Sequence[int]) -> int:
    text = builder.CreateString(name)
    given = vector(builder, args)
    return table(builder, {1: ("UOffsetTRelative", text), 2: ("UOffsetTRelative", given)})


def graph(
    builder: Any,
    values: Sequence[int],
    ops: Sequence[int],
    inputs: Sequence[int] = (),
    outputs: Sequence[int] = (),
) -> bytes:
    """The flatbuffer of what was made in `builder`."""
    fields = {1: ("UOffsetTRelative", vector(builder, ops, "Offset"))}
    fields[2] = ("UOffsetTRelative", vector(builder, values, "Offset"))
    fields[3] = ("UOffsetTRelative", vector(builder, inputs, "Uint32"))
    fields[4] = ("UOffsetTRelative", vector(builder, outputs, "Uint32"))
    builder.Finish(table(builder, fields), file_identifier=b"VK00")
    return bytes(builder.Output())


def program(flatbuffer: bytes) -> bytes:
    """The smallest real file, with this graph instead of its own."""
    data = bytearray(SMALL.read_bytes())
    ((start, size),) = (part for part in open_program(bytes(data)).segments if part[1])
    padded = flatbuffer + bytes(-len(flatbuffer) % 16)
    end = 32 + len(padded)
    blob = struct.pack("<4x4sHIIIQ2x", b"VH00", 30, 32, len(flatbuffer), end, 0) + padded
    where = bytes(data[:start]).index(struct.pack("<Q", size), 40)  # DataSegment.size
    data[where : where + 8] = struct.pack("<Q", len(blob))
    data[32:40] = struct.pack("<Q", len(blob))  # the extended header's segment data size
    return bytes(data[:start]) + blob
