# SPDX-License-Identifier: Apache-2.0
"""docs/examples/audit_ray.py: all of it but Ray."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import fsspec
import pytest

SCRIPT = Path(__file__).parents[3] / "docs" / "examples" / "audit_ray.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit_ray", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_audit(example: ModuleType, stock: Callable[[str], Path]) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/audit/a.pte", stock("leaf").read_bytes())
    store.pipe("/audit/b.pte", stock("one_plus").read_bytes())
    urls = ["memory://audit/a.pte", "memory://audit/missing.pte", "memory://audit/b.pte"]
    clean, missing, faulty = json.loads(json.dumps(example.audit(urls)))
    assert [row["file"] for row in (clean, missing, faulty)] == urls
    assert (clean["error"], clean["findings"]) == (None, [])
    assert "EG001" in missing["error"]
    assert [finding["code"] for finding in faulty["findings"]] == ["EG101"]
    store.rm("/audit", recursive=True)


def test_a_run_that_was_stopped_is_taken_up_again(example: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "findings.jsonl"
    assert example.finished(out) == set()
    out.write_text('{"file": "a"}\n{"file": "b"}\n{"file": "c", "err')
    assert example.finished(out) == {"a", "b"}
    assert out.read_text() == '{"file": "a"}\n{"file": "b"}\n'
    assert list(example.batches(list("abcdefg"), {"a", "b"}, 2)) == [["c", "d"], ["e", "f"], ["g"]]
