# SPDX-License-Identifier: Apache-2.0
"""Our .fbs files against those of each executorch release, field by field."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from schema.fbs import Schema, parse
from schema.record import TABLE, facts, read

ROOT = Path(__file__).parents[3]
RELEASES = {", ".join(row["releases"]): row["schemas"] for row in json.loads(TABLE.read_text())}
# An enum in plan.h -> the enum of the format.
HEADER_ENUMS = {"DType": "VkDataType", "Storage": "VkStorageType", "Layout": "VkMemoryLayout"}


def ours(name: str) -> Schema:
    return parse((ROOT / f"cpp/pte/schema/{name}.fbs").read_text(encoding="utf-8"))


def installed() -> dict[str, Any]:
    spec = find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("executorch is not installed")
    found = {
        name: facts(schema)
        for name, schema in read(Path(spec.submodule_search_locations[0])).items()
    }
    return json.loads(json.dumps(found))  # lists, as in the table


def assert_agree(schema: Schema, release: dict[str, Any]) -> None:
    assert schema.identifier == release["identifier"]
    assert schema.unions == release["unions"]
    assert schema.tables.keys() == release["tables"].keys()
    for table, fields in release["tables"].items():
        assert schema.tables[table] == fields, table


@pytest.mark.parametrize("name", ["program", "graph"])
@pytest.mark.parametrize("releases", RELEASES)
def test_recorded_releases(name: str, releases: str) -> None:
    assert_agree(ours(name), RELEASES[releases][name])


@pytest.mark.parametrize("name", ["program", "graph"])
def test_installed_release(name: str) -> None:
    """A field that a new release adds fails here by name."""
    assert_agree(ours(name), installed()[name])


@pytest.mark.parametrize("name", HEADER_ENUMS)
def test_numbers_in_plan_h(name: str) -> None:
    """Ours may lack enumerators (they pass through), but those it has bear the right number."""
    header = (ROOT / "cpp/pte/include/etvk_guard/plan.h").read_text(encoding="utf-8")
    body = re.search(rf"enum class {name} : \w+ \{{(.*?)\}}", header, re.S)
    assert body is not None
    mine = {key: int(value) for key, value in re.findall(r"k(\w+)\s*=\s*(\d+)", body.group(1))}
    assert len(mine) >= 4
    for release in RELEASES.values():
        theirs = {
            plain(key): value
            for key, value in release["graph"]["enums"][HEADER_ENUMS[name]].items()
        }
        assert {plain(key): value for key, value in mine.items()}.items() <= theirs.items()


def plain(name: str) -> str:
    """`kWidthPacked` and `TENSOR_WIDTH_PACKED`, `kDefault` and `DEFAULT_STORAGE` are one."""
    return re.sub(r"^tensor_|_storage$|_layout$|_", "", name.lower())


def test_the_comparison_sees_differences() -> None:
    release = RELEASES[next(iter(RELEASES))]["graph"]
    text = (ROOT / "cpp/pte/schema/graph.fbs").read_text(encoding="utf-8")
    for old, new in [
        ("mem_obj_id: int (id: 3)", "mem_obj_id: uint (id: 3)"),
        ("constant_id: int (id: 2)", "constant_ids: int (id: 2)"),
        ("storage_type: ubyte = 255", "storage_type: ubyte = 254"),
        ("staging_datatype: byte = 127 (id: 6)", "staging_datatype: byte = 127 (id: 7)"),
        ("Double, Bool, VkTensor", "Bool, Double, VkTensor"),
        ('"VK00"', '"VK01"'),
        ("table SymInt { value: int (id: 0); }", ""),
    ]:
        assert text.count(old) >= 1, old
        with pytest.raises(AssertionError):
            assert_agree(parse(text.replace(old, new)), release)
