#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the prepack contract as a C++17 header: `gen_contract.py TABLE.json OUT.h`.

Standard library only, and the same table always gives the same bytes: the header is a build product
of the table that Python, the docs and the tests read too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Table = dict[str, Any]

SEVERITIES = ("info", "warning", "error")
STOCK = ("none", "wrong", "abort")
CONDITIONS = ("constant", "row-constant")
REWRITES = (
    "none",
    "norm-unit-weight",
    "layer-norm-unit",
    "channel-norm-unit",
    "runtime-linear",
    "runtime-embedding",
)
BROKEN = ("runtime", "shape", "none", "mutable")

PROLOGUE = """\
// SPDX-License-Identifier: Apache-2.0
// Made from python/etvk_guard/contract/table.json by cpp/pte/gen_contract.py; do not edit.
#pragma once

#include <cstdint>
#include <string_view>

namespace etvk_guard {
"""

STRUCTS = """\
struct ErrorInfo {
  ErrorCode value;
  const char* code;  // "EG001"
  const char* name;  // "io-error"
  const char* title;
  const char* explain;
  const char* advice;
};

struct FindingInfo {
  FindingCode value;
  const char* code;  // "EG101"
  const char* name;  // "norm-weight-runtime"
  Severity severity;
  Stock stock;  // what a stock delegate does with it
  const char* title;
  const char* explain;
  const char* advice;
};

// One argument that an op prepacks. Where a code is FindingCode::kNone, that way of breaking the
// condition is legal, or cannot happen.
struct PrepackRow {
  const char* op;
  uint8_t arg;  // index into OperatorCall.args; the op's result is the last of them
  const char* name;
  Condition condition;
  bool none_ok;
  FindingCode runtime;
  FindingCode shape;
  FindingCode none;
  FindingCode mutable_;
  Rewrite rewrite;
  uint8_t release_mask;  // bit i: kReleases[i] has the op and breaks on a run-time value
};

struct OpInfo {
  const char* name;
  uint8_t release_mask;  // bit i: kReleases[i] registers the op
  uint16_t first_row;    // its rows are kPrepackRows[first_row .. first_row + row_count)
  uint16_t row_count;
  uint32_t either_mask;    // bit i: argument i may be a constant, though it has no row
  uint32_t writes_mask;    // bit i: argument i is written in place
  uint32_t symbolic_mask;  // bit i: argument i is a list that may hold a dynamic size
  uint32_t integers_mask;  // bit i: argument i is a number that is read as an integer
};

// An op that lowering accepts, or that an older release registered, and no release here registers.
struct MissingOp {
  const char* name;
  uint8_t lowered_mask;  // bit i: lowering of kReleases[i] accepts it
};
"""

LOOKUPS = """\
// Null for kNone and for a number that is no code.
constexpr const ErrorInfo* find_error(ErrorCode value) {
  for (const ErrorInfo& info : kErrors) {
    if (info.value == value) {
      return &info;
    }
  }
  return nullptr;
}

constexpr const FindingInfo* find_finding(FindingCode value) {
  for (const FindingInfo& info : kFindings) {
    if (info.value == value) {
      return &info;
    }
  }
  return nullptr;
}

namespace contract_detail {

// Binary search in rows that are sorted by name; null where the name is not among them.
template <typename Row>
constexpr const Row* find_named(const Row* rows, uint32_t count, std::string_view name) {
  uint32_t low = 0;
  uint32_t high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const int order = std::string_view(rows[middle].name).compare(name);
    if (order == 0) {
      return &rows[middle];
    }
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nullptr;
}

}  // namespace contract_detail

// Null for an op that no known release registers. O(log n).
constexpr const OpInfo* find_op(std::string_view name) {
  return contract_detail::find_named(kKnownOps, kKnownOpCount, name);
}

// Null for an op that is not known to be missing. O(log n).
constexpr const MissingOp* find_missing_op(std::string_view name) {
  return contract_detail::find_named(kMissingOps, kMissingOpCount, name);
}

}  // namespace etvk_guard
"""


def constant(name: str) -> str:
    """'not-a-pte' -> 'kNotAPte'."""
    return "k" + "".join(part[:1].upper() + part[1:] for part in name.split("-"))


def quote(text: str) -> str:
    """A C++ string literal; what is not printable ASCII becomes the octal of its UTF-8 bytes."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif char == "?":  # no trigraphs
            out.append("\\?")
        elif 0x20 <= byte < 0x7F:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def enum(name: str, kind: str, members: list[tuple[str, int]]) -> str:
    """One enum class."""
    lines = [f"enum class {name} : {kind} {{"]
    lines += [f"  {constant(member)} = {value}," for member, value in members]
    return "\n".join([*lines, "};", ""])


def array(kind: str, name: str, rows: list[str]) -> str:
    """One constexpr array, a row a line."""
    lines = [f"inline constexpr {kind} {name}[] = {{"]
    lines += [f"    {row}," for row in rows]
    return "\n".join([*lines, "};", ""])


def number(code: str) -> int:
    """'EG101' -> 101."""
    return int(code.removeprefix("EG"))


def mask(releases: list[str], present: Any) -> int:
    """The releases that are present, as bits."""
    return sum(1 << i for i, release in enumerate(releases) if release in present)


def bits(indices: list[int]) -> str:
    """Argument indices as a literal with these bits."""
    return f"{sum(1 << i for i in indices)}u"


def missing_rows(table: Table) -> list[str]:
    """The rows of kMissingOps."""
    return [
        f"{{{quote(op)}, {mask(table['releases'], table['missing'][op]['lowered_by'])}}}"
        for op in sorted(table["missing"], key=str.encode)
    ]


def enums(table: Table) -> str:
    """Every enum of the header."""

    def codes(rows: list[Any]) -> list[tuple[str, int]]:
        return [("none", 0)] + [(row["name"], number(row["code"])) for row in rows]

    def counted(names: tuple[str, ...]) -> list[tuple[str, int]]:
        return [(name, i) for i, name in enumerate(names)]

    return "\n".join(
        [
            enum("ErrorCode", "uint16_t", codes(table["errors"])),
            enum("FindingCode", "uint16_t", codes(table["findings"])),
            enum("Severity", "uint8_t", counted(SEVERITIES)),
            enum("Stock", "uint8_t", counted(STOCK)),
            enum("Condition", "uint8_t", counted(CONDITIONS)),
            enum("Rewrite", "uint8_t", counted(REWRITES)),
        ]
    )


def member(kind: str, name: str, allowed: tuple[str, ...]) -> str:
    """An enumerator; raises ValueError for a name that the enum does not have."""
    if name not in allowed:
        raise ValueError(f"{kind} '{name}' is not one of {', '.join(allowed)}")
    return f"{kind}::{constant(name)}"


def info_rows(table: Table) -> tuple[list[str], list[str]]:
    """The rows of kErrors and of kFindings."""

    def texts(row: Any, keys: tuple[str, ...]) -> str:
        return ", ".join(quote(row[key]) for key in keys)

    errors = [
        f"{{ErrorCode::{constant(row['name'])}, "
        f"{texts(row, ('code', 'name', 'title', 'explain', 'advice'))}}}"
        for row in table["errors"]
    ]
    findings = [
        f"{{FindingCode::{constant(row['name'])}, {texts(row, ('code', 'name'))}, "
        f"{member('Severity', row['severity'], SEVERITIES)}, "
        f"{member('Stock', row['stock'], STOCK)}, {texts(row, ('title', 'explain', 'advice'))}}}"
        for row in table["findings"]
    ]
    return errors, findings


def prepack_row(table: Table, op: str, row: Any) -> str:
    """One row of kPrepackRows."""
    names = {finding["code"]: finding["name"] for finding in table["findings"]}
    codes = ", ".join(
        f"FindingCode::{constant(names[row['broken'][way]] if way in row['broken'] else 'none')}"
        for way in BROKEN
    )
    breaks = [r for r, does in row["releases"].items() if does != "none"]
    return (
        f"{{{quote(op)}, {row['arg']}, {quote(row['name'])}, "
        f"{member('Condition', row['condition'], CONDITIONS)}, "
        f"{str(row['none_ok']).lower()}, {codes}, "
        f"{member('Rewrite', row['rewrite'] or 'none', REWRITES)}, "
        f"{mask(table['releases'], breaks)}}}"
    )


def op_rows(table: Table) -> tuple[list[str], list[str]]:
    """The rows of kPrepackRows and of kKnownOps."""
    rows: list[str] = []
    ops: list[str] = []
    # std::string_view compares bytes as unsigned, and so does sorting encoded names.
    for op in sorted(table["ops"], key=str.encode):
        entry = table["ops"][op]
        mine = [prepack_row(table, op, row) for row in entry["prepack"]]
        known = mask(table["releases"], entry["releases"])
        keys = ("either", "writes", "symbolic", "integers")
        masks = ", ".join(bits(entry.get(key, [])) for key in keys)
        ops.append(f"{{{quote(op)}, {known}, {len(rows)}, {len(mine)}, {masks}}}")
        rows += mine
    return rows, ops


def header(table: Table) -> str:
    """The whole header."""
    errors, findings = info_rows(table)
    rows, ops = op_rows(table)
    missing = missing_rows(table)
    releases = [quote(release) for release in table["releases"]]
    return "\n".join(
        [
            PROLOGUE,
            enums(table),
            STRUCTS,
            array("const char*", "kReleases", releases),
            array("ErrorInfo", "kErrors", errors),
            array("FindingInfo", "kFindings", findings),
            "// Sorted by op, then by argument.",
            array("PrepackRow", "kPrepackRows", rows),
            "// These two are sorted by name.",
            array("OpInfo", "kKnownOps", ops),
            array("MissingOp", "kMissingOps", missing),
            f"inline constexpr uint32_t kErrorCount = {len(errors)};",
            f"inline constexpr uint32_t kFindingCount = {len(findings)};",
            f"inline constexpr uint32_t kPrepackRowCount = {len(rows)};",
            f"inline constexpr uint32_t kKnownOpCount = {len(ops)};",
            f"inline constexpr uint32_t kMissingOpCount = {len(missing)};",
            "",
            LOOKUPS,
        ]
    )


def main(argv: list[str]) -> int:
    """Write the header; returns the exit status."""
    if len(argv) != 3:
        print("usage: gen_contract.py TABLE.json OUT.h", file=sys.stderr)
        return 2
    table = json.loads(Path(argv[1]).read_text(encoding="utf-8"))
    Path(argv[2]).write_text(header(table), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
