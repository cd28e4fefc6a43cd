# SPDX-License-Identifier: Apache-2.0
"""Adds a release's schemas to releases.json.

In tests/python: `python -m schema.record VERSION FOLDER`, FOLDER being an installed `executorch`
package or the root of its sources. What is kept are facts of the format (ids, names, types,
defaults), one entry for releases that agree.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from schema.fbs import Schema, parse

TABLE = Path(__file__).with_name("releases.json")
Facts = dict[str, object]


def read(folder: Path) -> dict[str, Schema]:
    """The schemas of an executorch package or source tree, by the names of ours."""

    def text(path: str) -> str:
        return (folder / path).read_text(encoding="utf-8")

    return {
        "program": parse(text("schema/program.fbs"), text("schema/scalar_type.fbs")),
        "graph": parse(text("backends/vulkan/serialization/schema.fbs")),
    }


def facts(schema: Schema) -> Facts:
    """What our schema must agree with. Enumerators are a matter of the C++ headers."""
    return {
        "identifier": schema.identifier,
        "tables": schema.tables,
        "unions": schema.unions,
        "enums": schema.enums,
    }


def main(version: str, folder: str) -> None:
    entry = {name: facts(schema) for name, schema in read(Path(folder)).items()}
    table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else []
    same = next((row for row in table if row["schemas"] == entry), None)
    if same is None:
        same = {"releases": [], "schemas": entry}
        table.append(same)
    same["releases"] = sorted({*same["releases"], version})
    TABLE.write_text(dump(table), encoding="utf-8")


def dump(table: list[dict[str, object]]) -> str:
    """JSON with a line for each table, union and enum."""
    lines: list[str] = []

    def walk(value: object, indent: str, deep: int, tail: str) -> None:
        brackets = "{}" if isinstance(value, dict) else "[]"
        if not isinstance(value, (dict, list)) or deep == 0:
            lines[-1] += json.dumps(value) + tail
            return
        lines[-1] += brackets[0]
        items = list(value.items()) if isinstance(value, dict) else [(None, v) for v in value]
        for i, (key, item) in enumerate(items):
            lines.append(indent + " " + (f"{json.dumps(key)}: " if key is not None else ""))
            walk(item, indent + " ", deep - 1, "," if i + 1 < len(items) else "")
        lines.append(indent + brackets[1] + tail)

    lines.append("")
    walk(table, "", 5, "")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
