# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from etvk_guard import EtvkGuardError, __version__, check, contract, open_program

Cli = Callable[..., Any]
Stock = Callable[[str], Path]


def test_repair_writes_a_clean_program(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    out = tmp_path / "out.pte"
    outcome = cli("repair", stock("one_plus"), "-o", out)
    assert outcome.code == 0
    assert "1 finding repaired" in outcome.out
    assert check(out).clean
    assert list(tmp_path.iterdir()) == [out]


def test_repair_json(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    path, out = stock("one_plus"), tmp_path / "out.pte"
    outcome = cli("repair", path, "-o", out, "--json")
    made = outcome.json
    assert outcome.code == 0
    keys = ["file", "error", "output", "changed", "repaired", "remaining", "added_activation_bytes"]
    assert list(made) == keys
    assert (made["file"], made["error"], made["output"]) == (str(path), None, str(out))
    assert [finding["code"] for finding in made["repaired"]] == ["EG101"]
    assert made["remaining"] == []
    assert made["changed"] is True


def test_repair_of_a_clean_program_copies_it(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    path, out = stock("leaf"), tmp_path / "out.pte"
    outcome = cli("repair", path, "-o", out)
    assert outcome.code == 0
    assert "nothing to repair" in outcome.out
    assert out.read_bytes() == path.read_bytes()


def test_repair_says_what_remains(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    """A convolution with a run-time weight has no rewrite inside a file."""
    out = tmp_path / "out.pte"
    outcome = cli("repair", stock("convolution_runtime"), "-o", out)
    assert outcome.code == 1
    assert "1 finding remains:" in outcome.out
    assert "nothing that can be repaired, copied as it is" in outcome.out
    assert out.exists()
    assert not check(out).clean


def test_repair_errors(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    path = tmp_path / "in.pte"
    path.write_bytes(stock("one_plus").read_bytes())
    (tmp_path / "link.pte").symlink_to(path)
    before = path.read_bytes()
    cases = [
        (path, path, "EG019"),
        (path, tmp_path / "link.pte", "EG019"),
        (path, tmp_path / "no/such/folder.pte", "EG018"),
        (tmp_path / "missing.pte", tmp_path / "out.pte", "EG001"),
    ]
    for source, target, code in cases:
        outcome = cli("repair", source, "-o", target)
        assert outcome.code == 2
        assert code in outcome.err
        assert outcome.out == ""
        outcome = cli("repair", source, "-o", target, "--json")
        assert outcome.code == 2
        assert outcome.json["error"].startswith(code)
        assert outcome.json["output"] is None
    assert path.read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["in.pte", "link.pte"]
    assert cli("repair", path).code == 2  # no -o


def test_show(cli: Cli, stock: Stock) -> None:
    lines = cli("show", stock("split")).out.splitlines()
    assert "2 delegates, 1 CPU op" in "\n".join(lines)
    assert "  CPU op aten::cumsum.out" in lines
    assert sum("et_vk.rms_norm.default" in line for line in lines) == 2


def test_show_json_is_the_program(cli: Cli, stock: Stock) -> None:
    path = stock("split")
    shown = cli("show", path, "--json").json
    program = open_program(path)
    assert shown["size"] == path.stat().st_size
    assert [method["name"] for method in shown["methods"]] == ["forward"]
    for made, delegate in zip(
        shown["methods"][0]["delegates"], program.methods[0].delegates, strict=True
    ):
        assert delegate.graph is not None
        ops = [{**asdict(op), "args": list(op.args)} for op in delegate.graph.ops]
        assert made["graph"]["ops"] == ops
        assert len(made["graph"]["values"]) == len(delegate.graph.values)


def test_show_errors(cli: Cli, tmp_path: Path) -> None:
    assert cli("show", tmp_path).code == 2
    outcome = cli("show", tmp_path, "--json")
    assert outcome.code == 2
    assert outcome.json["error"].startswith("EG002")


def test_findings_lists_every_code(cli: Cli) -> None:
    codes = [row.code for row in (*contract.findings(), *contract.errors())]
    outcome = cli("findings")
    assert outcome.code == 0
    assert [line[:5] for line in outcome.out.splitlines() if line.startswith("EG")] == codes
    listed = cli("findings", "--json").json
    assert [row["code"] for row in listed["findings"] + listed["errors"]] == codes


@pytest.mark.parametrize(
    "command", [["-m", "etvk_guard"], ["-c", "from etvk_guard.cli import main; main()"]]
)
def test_entry_points(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"etvk-guard {__version__}\n"


def test_a_closed_pipe_is_no_traceback(stock: Stock) -> None:
    command = f"{sys.executable} -m etvk_guard findings | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout.startswith("EG")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_output_that_cannot_be_written(more: tuple[str, ...], stock: Stock) -> None:
    command = [sys.executable, "-m", "etvk_guard", "check", str(stock("leaf")), *more]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("etvk-guard: cannot write the output: ")
    assert len(done.stderr.splitlines()) == 1


def test_show_what_only_a_newer_schema_has(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    """An instruction of an unknown kind: the program opens, and cannot be shown."""
    data = bytearray(stock("one_plus").read_bytes())
    path = tmp_path / "newer.pte"
    for offset in range(48, open_program(data).methods[0].delegates[0].offset):
        changed = bytearray(data)
        changed[offset] = 99
        try:
            _ = open_program(changed).methods[0].instructions
        except EtvkGuardError as error:
            if error.code == "EG015":
                path.write_bytes(changed)
                break
    assert path.exists()
    for options in ([], ["--json"]):
        outcome = cli("show", *options, path)
        assert outcome.code == 2
        assert "EG015" in outcome.out + outcome.err


def test_a_code_is_explained(cli: Cli) -> None:
    outcome = cli("findings", "eg101", "EG004")
    assert outcome.code == 0
    rows = (contract.finding("EG101"), contract.error("EG004"))
    assert all(row.name in outcome.out for row in rows)
    assert contract.finding("EG102").name not in outcome.out
    named = cli("findings", "EG101", "--json").json
    assert [row["code"] for row in named["findings"]] == ["EG101"]
    assert named["errors"] == []


def test_an_unknown_code_is_an_error(cli: Cli) -> None:
    outcome = cli("findings", "EG101", "EG999")
    assert outcome.code == 2
    assert "no such code: EG999" in outcome.err
