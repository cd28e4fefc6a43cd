# SPDX-License-Identifier: Apache-2.0
"""`docs/findings.md` is what the table says, and says all of it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from etvk_guard import contract
from etvk_guard.contract import docs

PAGE = Path(__file__).parents[3] / "docs" / "findings.md"


def test_page_is_current() -> None:
    assert docs.main(["--check", "--output", str(PAGE)]) == 0


def test_writes_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "findings.md"
    assert docs.main(["--check", "--output", str(page)]) == 1
    assert docs.main(["--output", str(page)]) == 0
    assert docs.main(["--check", "--output", str(page)]) == 0
    page.write_text(page.read_text().replace("EG101", "EG100", 1))
    assert docs.main(["--check", "--output", str(page)]) == 1
    assert "not current" in capsys.readouterr().err


def test_page_has_every_code_and_op() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for info in contract.findings():
        assert f"### {info.code} {info.name}\n" in text
        assert info.explain in text
        assert info.advice in text
    for error in contract.errors():
        assert f"| {error.code} | {error.name} |" in text
    for row in contract.rows():
        assert f"| `{row.op}` | {row.arg} `{row.name}` |" in text
    for name in [*contract.known_ops(), *(op.name for op in contract.missing_ops())]:
        assert f"\n| `{name}` |" in text


def test_tables_are_well_formed() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for line, below in itertools.pairwise(lines):
        if line.startswith("|") and below.startswith("|"):
            assert line.replace(r"\|", "").count("|") == below.replace(r"\|", "").count("|")


def test_cell_with_a_bar() -> None:
    assert docs.table(("a",), [("x|y",)]) == "| a |\n| --- |\n| x\\|y |"
