# SPDX-License-Identifier: Apache-2.0
"""The generated C++ header: compiles with every warning on, and says what the table says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

import pytest

from etvk_guard import contract

ROOT = Path(__file__).parents[3]
GENERATOR = ROOT / "cpp" / "pte" / "gen_contract.py"
TABLE = ROOT / "python" / "etvk_guard" / "contract" / "table.json"
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wshadow",
    "-Wpedantic",
    "-Werror",
]

# Prints each row as a JSON array, so that all that the header holds can be compared.
DUMP = r"""
#include "contract.h"
#include <cstdio>
using namespace etvk_guard;
static_assert(static_cast<int>(ErrorCode::kNotAPte) == 4);
static_assert(static_cast<int>(FindingCode::kNormWeightRuntime) == 101);
static_assert(find_op("et_vk.rms_norm.default")->row_count == 1);
static_assert(find_op("et_vk.rms_norm") == nullptr);
static_assert(find_op("") == nullptr && find_op("zzz") == nullptr);
static_assert(find_missing_op("aten.logical_not.default") != nullptr);
static_assert(find_missing_op("aten.mul.Tensor") == nullptr);
static_assert(find_error(ErrorCode::kNone) == nullptr);
static_assert(find_finding(FindingCode::kNone) == nullptr);
constexpr bool all_found() {
  for (const OpInfo& op : kKnownOps) if (find_op(op.name) != &op) return false;
  for (const MissingOp& op : kMissingOps) if (find_missing_op(op.name) != &op) return false;
  for (const FindingInfo& i : kFindings) if (find_finding(i.value) != &i) return false;
  for (const ErrorInfo& i : kErrors) if (find_error(i.value) != &i) return false;
  return true;
}
static_assert(all_found());
static int n(FindingCode code) { return static_cast<int>(code); }
int main() {
  for (const ErrorInfo& i : kErrors)
    std::printf("[\"error\",%d,\"%s\",\"%s\"]\n", static_cast<int>(i.value), i.code, i.name);
  for (const FindingInfo& i : kFindings)
    std::printf("[\"finding\",%d,\"%s\",\"%s\",%d,%d]\n", n(i.value), i.code, i.name,
                static_cast<int>(i.severity), static_cast<int>(i.stock));
  for (const OpInfo& op : kKnownOps) {
    std::printf("[\"op\",\"%s\",%d,%u,%u,%u,%u]\n", op.name, op.release_mask, op.either_mask,
                op.writes_mask, op.symbolic_mask, op.integers_mask);
    for (unsigned i = 0; i < op.row_count; ++i) {
      const PrepackRow& r = kPrepackRows[op.first_row + i];
      std::printf("[\"row\",\"%s\",%d,\"%s\",%d,%d,%d,%d,%d,%d,%d,%d]\n", r.op, r.arg, r.name,
                  static_cast<int>(r.condition), static_cast<int>(r.none_ok), n(r.runtime),
                  n(r.shape), n(r.none), n(r.mutable_), static_cast<int>(r.rewrite),
                  r.release_mask);
    }
  }
  for (const MissingOp& op : kMissingOps)
    std::printf("[\"missing\",\"%s\",%d]\n", op.name, op.lowered_mask);
}
"""
SEVERITY = {"info": 0, "warning": 1, "error": 2}
STOCK = {"none": 0, "wrong": 1, "abort": 2}
CONDITION = {"constant": 0, "row-constant": 1}
REWRITE = {
    None: 0,
    "norm-unit-weight": 1,
    "layer-norm-unit": 2,
    "channel-norm-unit": 3,
    "runtime-linear": 4,
    "runtime-embedding": 5,
}


def generate(table: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(GENERATOR), str(table), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def bits(names: Container[str]) -> int:
    return sum(1 << i for i, release in enumerate(contract.releases()) if release in names)


def number(code: str | None) -> int:
    return 0 if code is None else int(code.removeprefix("EG"))


def expected() -> list[list[object]]:
    lines: list[list[object]] = []
    for error in contract.errors():
        lines.append(["error", number(error.code), error.code, error.name])
    for info in contract.findings():
        kind = [SEVERITY[info.severity], STOCK[info.stock]]
        lines.append(["finding", number(info.code), info.code, info.name, *kind])
    for name in contract.known_ops():
        op = contract.op(name)
        assert op is not None
        places = (op.either, op.writes, op.symbolic, op.integers)
        masks = [sum(1 << i for i in args) for args in places]
        lines.append(["op", name, bits(op.releases), *masks])
        for row in op.prepack:
            codes = [number(row.broken.get(w)) for w in ("runtime", "shape", "none", "mutable")]
            head = ["row", name, row.arg, row.name, CONDITION[row.condition], int(row.none_ok)]
            lines.append([*head, *codes, REWRITE[row.rewrite], bits(row.releases)])
    for missing in contract.missing_ops():
        lines.append(["missing", missing.name, bits(missing.lowered_by)])
    return lines


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
def test_header_says_what_the_table_says(tmp_path: Path, standard: str) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    assert compiler, "a C++ compiler is needed"
    assert generate(TABLE, tmp_path / "contract.h").returncode == 0
    (tmp_path / "dump.cpp").write_text(DUMP)
    flags = [f"-std={standard}", *WARNINGS, "-fno-exceptions", "-fno-rtti"]
    build = [compiler, *flags, "dump.cpp", "-o", "dump"]
    subprocess.run(build, cwd=tmp_path, check=True)
    dump = subprocess.run([tmp_path / "dump"], capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in dump.stdout.splitlines()] == expected()


def test_header_is_deterministic(tmp_path: Path) -> None:
    for name in ("a.h", "b.h"):
        assert generate(TABLE, tmp_path / name).returncode == 0
    text = (tmp_path / "a.h").read_bytes()
    assert text == (tmp_path / "b.h").read_bytes()
    assert text.isascii()
    includes = {line for line in text.decode().splitlines() if line.startswith("#include")}
    assert includes == {"#include <cstdint>", "#include <string_view>"}


def test_order_of_the_table_does_not_matter(tmp_path: Path) -> None:
    table = json.loads(TABLE.read_text())
    for key in ("ops", "missing"):
        table[key] = dict(reversed(table[key].items()))
    (tmp_path / "reversed.json").write_text(json.dumps(table))
    assert generate(TABLE, tmp_path / "a.h").returncode == 0
    assert generate(tmp_path / "reversed.json", tmp_path / "b.h").returncode == 0
    assert (tmp_path / "a.h").read_bytes() == (tmp_path / "b.h").read_bytes()


@pytest.mark.parametrize(
    ("key", "value"),
    [("condition", "constnat"), ("rewrite", "norm-unit"), ("broken", {"none": "EG999"})],
)
def test_what_the_header_cannot_say_is_refused(tmp_path: Path, key: str, value: object) -> None:
    table = json.loads(TABLE.read_text())
    table["ops"]["et_vk.rms_norm.default"]["prepack"][0][key] = value
    (tmp_path / "bad.json").write_text(json.dumps(table))
    assert generate(tmp_path / "bad.json", tmp_path / "contract.h").returncode != 0
    assert not (tmp_path / "contract.h").exists()


def test_usage(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(GENERATOR)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "usage" in done.stderr
