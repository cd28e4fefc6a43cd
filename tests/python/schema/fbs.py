# SPDX-License-Identifier: Apache-2.0
"""Reads a flatbuffers schema as plain facts: enough of the language for the schemas at hand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

ALIASES = {
    "int8": "byte",
    "uint8": "ubyte",
    "int16": "short",
    "uint16": "ushort",
    "int32": "int",
    "uint32": "uint",
    "int64": "long",
    "uint64": "ulong",
    "float32": "float",
    "float64": "double",
}
ZERO = {"byte", "ubyte", "short", "ushort", "int", "uint", "long", "ulong", "float", "double"}


@dataclass
class Schema:
    """`tables`: name -> field name -> [id, type, default]; `unions`: name -> members in order."""

    identifier: str | None = None
    tables: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    unions: dict[str, list[str]] = field(default_factory=dict)
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    underlying: dict[str, str] = field(default_factory=dict)


def parse(text: str, *included: str) -> Schema:
    """`included`: texts of the files that `text` includes."""
    schema = Schema()
    for part in (*included, text):
        part = re.sub(r"//[^\n]*", "", part)
        found = re.search(r'file_identifier\s+"(....)"', part)
        schema.identifier = found.group(1) if found else schema.identifier
        for name, kind, body in re.findall(r"enum\s+(\w+)\s*:\s*(\w+)\s*\{(.*?)\}", part, re.S):
            schema.underlying[name] = kind
            schema.enums[name] = _enumerators(body)
        for name, body in re.findall(r"union\s+(\w+)\s*\{(.*?)\}", part, re.S):
            schema.unions[name] = re.findall(r"\w+", body)
        for name, body in re.findall(r"table\s+(\w+)\s*\{(.*?)\}", part, re.S):
            schema.tables[name] = _fields(body, schema)
    return schema


def _enumerators(body: str) -> dict[str, int]:
    values: dict[str, int] = {}
    following = 0
    for name, number in re.findall(r"(\w+)\s*(?:=\s*(-?\d+))?\s*(?:,|$)", body.strip()):
        following = int(number) if number else following
        values[name] = following
        following += 1
    return values


def _fields(body: str, schema: Schema) -> dict[str, list[Any]]:
    fields: dict[str, list[Any]] = {}
    following = 0
    pattern = r"(\w+)\s*:\s*(\[?\s*\w+\s*\]?)\s*(?:=\s*([\w.+-]+))?\s*(?:\(([^)]*)\))?\s*;"
    for name, kind, default, attributes in re.findall(pattern, body):
        kind = kind.replace(" ", "")
        if kind in schema.unions:  # takes an id for its type too
            following += 1
        explicit = re.search(r"\bid:\s*(\d+)", attributes)
        number = int(explicit.group(1)) if explicit else following
        fields[name] = [number, _type(kind, schema), _default(kind, default, schema)]
        following = number + 1
    return fields


def _type(kind: str, schema: Schema) -> str:
    inner = kind.strip("[]")
    inner = ALIASES.get(inner, schema.underlying.get(inner, inner))
    return f"[{inner}]" if kind.startswith("[") else inner


def _default(kind: str, default: str, schema: Schema) -> int | float | None:
    """None: the type has no default."""
    scalar = _type(kind, schema)
    if scalar == "bool":
        return int(default == "true")
    if scalar not in ZERO:
        return None
    if not default:
        return 0
    if kind in schema.enums:
        return schema.enums[kind][default]
    return float(default) if scalar in ("float", "double") else int(default)
