# SPDX-License-Identifier: Apache-2.0
"""Writes `docs/findings.md` from the contract: `python -m etvk_guard.contract.docs [--check]`.

With `--check` nothing is written; the exit status is 1 if the file is not what the table says.
`--output PATH` names another file than the one in the source tree.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from etvk_guard import contract

_OUTPUT = Path(__file__).parents[3] / "docs" / "findings.md"

_STOCK = {
    "abort": "aborts while the method loads",
    "wrong": "gives silently wrong values",
    "none": "runs",
}
_CONDITIONS = {"constant": "a constant", "row-constant": "a constant, D elements, last dim D"}

_INTRO = """\
# Findings and the prepack contract

<!-- Made from the contract's table.json by `python -m etvk_guard.contract.docs`; do not edit. -->

ExecuTorch's Vulkan delegate (ET-VK) copies some arguments of an op to the GPU once, while a method
loads: they are *prepacked*, and must be serialized constants. Lowering does not check that they
are. This page lists what `etvk-guard check` can say about a program, and the contract it goes by.
"Stock" is the delegate as ExecuTorch releases it. The contract covers the releases {releases};
`main` is the source of 2026-08-22, and 1.5 is taken to register what `main` does.
"""

_OPS_INTRO = """\
## The contract

{ops} ops are registered by at least one of the releases; {with_rows} of them prepack {rows}
arguments. `arg` is the index in the graph's operator call, which holds the arguments of the op's
schema and then its result. The columns of codes say what is found when the argument is computed
while running, is a constant of another shape, is missing (None), or is a mutable buffer; "-" means
that this is legal, or cannot happen. D is the size of the last dimension of the op's first
argument. "Stock" says what stock does with a value that is computed while running, and in which
releases. The last three columns say what becomes of such a value: the rule of guarded lowering that
keeps the op in the delegate ("CPU": the op runs on the portable kernels), the repair inside a file,
and whether the op builder takes it.
"""

_EITHER_INTRO = """\
### Ops that take both

These arguments may be constants, which are prepacked, as well as run-time values. Every other
tensor that has no row above must be a run-time value: EG204.
"""

_MISSING_INTRO = """\
### Ops that are missing

None of the releases registers these, though their lowering accepts them ("lowered by") or an older
release registered them: EG303. A method that has one aborts while it loads.
"""

_KNOWN_INTRO = """\
### All ops

Every op that the releases register, the first release that did, and which of the releases do.
An op that is not here is reported as EG301.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells must not contain newlines."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def _finding(info: contract.FindingInfo) -> str:
    repair = f"repaired in a file by {info.repair}" if info.repair else "not repaired in a file yet"
    facts = [f"Severity: {info.severity}", f"stock {_STOCK[info.stock]}"]
    if info.severity != "info" or info.repair:
        facts.append(repair)
    return "\n".join(
        [
            f"### {info.code} {info.name}",
            "",
            f"**{info.title}.** {'; '.join(facts)}.",
            "",
            info.explain,
            "",
            f"*What to do:* {info.advice}",
            "",
        ]
    )


def _repaired(info: contract.FindingInfo) -> str:
    """Whether a repair exists for all the ops that the finding is about."""
    if info.repair is None:
        return "-"
    codes = ((row, way) for row in contract.rows() for way in row.broken)
    some = any(row.broken[way] == info.code and row.rewrite is None for row, way in codes)
    return "some ops" if some else "yes"


def _findings() -> list[str]:
    head = ("Code", "Name", "Severity", "Stock", "Repaired in a file", "What")
    rows = [
        (i.code, i.name, i.severity, _STOCK[i.stock], _repaired(i), i.title)
        for i in contract.findings()
    ]
    return [
        "## Findings\n\nA program that can be read, but that stock does not run right.\n",
        table(head, rows) + "\n",
        *map(_finding, contract.findings()),
    ]


def _errors() -> list[str]:
    rows = [(i.code, i.name, i.title, f"{i.explain} {i.advice}") for i in contract.errors()]
    return [
        "## Errors\n\nA file that cannot be read, or an output that cannot be written.\n",
        table(("Code", "Name", "What", "Explanation and advice"), rows) + "\n",
    ]


def _row(row: contract.PrepackRow) -> tuple[str, ...]:
    ways: tuple[contract.Breaking, ...] = ("runtime", "shape", "none", "mutable")
    codes = (row.broken.get(way, "-") for way in ways)
    stock = sorted(set(row.releases.values()))
    cell = f"{'/'.join(stock)}: {', '.join(row.releases)}"
    fixed = (row.lowering or "CPU", row.rewrite or "-", "yes" if row.builder else "-")
    must_be = _CONDITIONS[row.condition]
    return (f"`{row.op}`", f"{row.arg} `{row.name}`", must_be, *codes, cell, *fixed)


def _notes() -> list[str]:
    lines = []
    for name in contract.known_ops():
        info = contract.op(name)
        assert info is not None
        if info.note:
            lines.append(f"- `{name}`: {info.note}")
        grouped: dict[str, list[str]] = {}
        for row in info.prepack:
            if row.note:
                grouped.setdefault(row.note, []).append(f"`{row.name}`")
        lines += [f"- `{name}`, {', '.join(args)}: {note}" for note, args in grouped.items()]
    return ["### Notes\n", "\n".join(lines) + "\n"]


def _contract() -> list[str]:
    rows = contract.rows()
    broken = ("run-time", "shape", "None", "mutable")
    head = ("Op", "arg", "must be", *broken, "stock", "lowering", "file", "builder")
    counts = {"ops": len(contract.known_ops()), "rows": len(rows)}
    with_rows = len({row.op for row in rows})
    return [
        _OPS_INTRO.format(**counts, with_rows=with_rows),
        table(head, map(_row, rows)) + "\n",
        *_notes(),
    ]


def _lists() -> list[str]:
    ops = [info for info in map(contract.op, contract.known_ops()) if info is not None]
    either = [
        (f"`{i.name}`", ", ".join(f"`{i.args[a]}`" for a in i.either)) for i in ops if i.either
    ]
    missing = [
        (
            f"`{m.name}`",
            f"{m.since} to {m.until}" if m.since else "never",
            ", ".join(m.lowered_by) or "-",
        )
        for m in contract.missing_ops()
    ]
    known = [(f"`{info.name}`", info.since, ", ".join(info.releases)) for info in ops]
    return [
        _EITHER_INTRO,
        table(("Op", "Arguments"), either) + "\n",
        _MISSING_INTRO,
        table(("Op", "Registered", "Lowered by"), missing) + "\n",
        _KNOWN_INTRO,
        table(("Op", "Since", "Registered by"), known) + "\n",
    ]


def render() -> str:
    """The whole page, as Markdown."""
    names = contract.releases()
    intro = _INTRO.format(releases=f"{', '.join(names[:-1])} and {names[-1]}")
    return "\n".join([intro, *_findings(), *_errors(), *_contract(), *_lists()])


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the page; returns the exit status."""
    parser = argparse.ArgumentParser(description="Write docs/findings.md from the contract.")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 if it differs")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="the file (%(default)s)")
    options = parser.parse_args(argv)
    path: Path = options.output
    text = render()
    if not options.check:
        path.write_text(text, encoding="utf-8", newline="\n")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    print(f"{path} is not current: run `python -m etvk_guard.contract.docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
