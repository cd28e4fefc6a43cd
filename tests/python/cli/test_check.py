# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from etvk_guard import check

Cli = Callable[..., Any]
Stock = Callable[[str], Path]

FILE_KEYS = ["file", "error", "findings", "delegates"]
FINDING_KEYS = ["code", "severity", "method", "delegate", "op_index", "op", "argument"]
FINDING_KEYS += ["message", "stock", "fixable"]
DELEGATE_KEYS = ["method", "delegate", "ops", "sha256"]


@pytest.fixture
def tree(stock: Stock, tmp_path: Path) -> Path:
    """a.pte clean, b/c.pte and b/d/e.pte faulty, b/bad.pte broken, b/note.txt no program."""
    (tmp_path / "b/d").mkdir(parents=True)
    shutil.copy(stock("leaf"), tmp_path / "a.pte")
    shutil.copy(stock("one_plus"), tmp_path / "b/c.pte")
    shutil.copy(stock("constant_rows"), tmp_path / "b/d/e.pte")
    (tmp_path / "b/bad.pte").write_bytes(b"\x10\0\0\0ET12" + b"junk" * 10)
    (tmp_path / "b/note.txt").write_text("no program")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["a.pte"], 0),
        (["b/c.pte"], 1),
        (["b/bad.pte"], 2),
        (["a.pte", "b/c.pte"], 1),
        (["b/c.pte", "b/bad.pte", "a.pte"], 2),
        (["missing.pte"], 2),
        (["a.pte", "missing.pte"], 2),
        (["*.nothing"], 2),
    ],
)
@pytest.mark.parametrize("options", [[], ["--json"], ["-q"]], ids=["text", "json", "quiet"])
def test_exit_codes(cli: Cli, tree: Path, names: list[str], code: int, options: list[str]) -> None:
    assert cli("check", *options, *(tree / name for name in names)).code == code


def test_json_has_the_agreed_shape(cli: Cli, stock: Stock) -> None:
    path = stock("one_plus")
    outcome = cli("check", "--json", path)
    assert list(outcome.json) == ["files"]
    (file,) = outcome.json["files"]
    assert list(file) == FILE_KEYS
    assert file["file"] == str(path)
    assert file["error"] is None
    (finding,) = file["findings"]
    assert list(finding) == FINDING_KEYS
    message = finding.pop("message")
    assert "[64]" in message
    assert finding == {
        "code": "EG101",
        "severity": "error",
        "method": "forward",
        "delegate": 0,
        "op_index": 3,
        "op": "et_vk.rms_norm.default",
        "argument": "weight",
        "stock": "abort",
        "fixable": True,
    }
    (delegate,) = file["delegates"]
    assert list(delegate) == DELEGATE_KEYS
    assert delegate["ops"] == list(check(path).delegates[0].ops)
    assert len(bytes.fromhex(delegate["sha256"])) == 32


def test_an_error_in_json(cli: Cli, tree: Path) -> None:
    outcome = cli("check", "--json", tree / "b/bad.pte", tree / "a.pte")
    bad, good = outcome.json["files"]
    assert bad["error"].startswith("EG0")
    assert str(tree / "b/bad.pte") in bad["error"]
    assert (bad["findings"], bad["delegates"]) == ([], [])
    assert good["error"] is None
    assert outcome.code == 2


def test_folders_and_patterns(cli: Cli, tree: Path) -> None:
    everything = ["a.pte", "b/bad.pte", "b/c.pte", "b/d/e.pte"]
    asked: list[tuple[list[str], list[str]]] = [
        ([""], everything),
        (["b"], everything[1:]),
        (["b/d", "a.pte"], ["b/d/e.pte", "a.pte"]),
        (["b/?.pte"], ["b/c.pte"]),
        (["**/*.pte"], everything),
        (["*"], everything),
        (["a.pte", "*.pte", "."], ["a.pte"]),
    ]
    for names, expected in asked[:-1]:
        outcome = cli("check", "--json", *(tree / name for name in names))
        files = [os.path.relpath(file["file"], tree) for file in outcome.json["files"]]
        assert sorted(files) == sorted(expected), names
    names, expected = asked[-1]
    outcome = cli("check", "--json", *(tree / name for name in names[:2]))
    assert [Path(file["file"]).name for file in outcome.json["files"]] == expected


def test_a_name_with_a_patterns_characters_is_a_name(
    cli: Cli, stock: Stock, tmp_path: Path
) -> None:
    path = tmp_path / "a[1]*.pte"
    shutil.copy(stock("leaf"), path)
    outcome = cli("check", "--json", path)
    assert [file["file"] for file in outcome.json["files"]] == [str(path)]
    assert outcome.code == 0


def test_a_folder_without_programs_is_an_error(cli: Cli, tmp_path: Path) -> None:
    outcome = cli("check", tmp_path)
    assert outcome.code == 2
    assert "no .pte file" in outcome.err


def test_order_is_that_of_the_command_line(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    names = [tmp_path / f"{index}.pte" for index in range(30)]
    for name in names:
        shutil.copy(stock("leaf"), name)
    shuffled = names[::2] + names[1::2][::-1]
    outcome = cli("check", "--json", *shuffled)
    assert [file["file"] for file in outcome.json["files"]] == list(map(str, shuffled))


def test_text_names_the_culprit(cli: Cli, stock: Stock) -> None:
    outcome = cli("check", stock("one_plus"), stock("leaf"))
    assert "one_plus.pte: 1 finding, 1 fixable" in outcome.out
    assert "EG101 error: forward, delegate 0, op 3 et_vk.rms_norm.default, weight" in outcome.out
    assert "a stock delegate aborts while the method loads" in outcome.out
    assert "leaf.pte: clean (1 Vulkan delegate, 1 op)" in outcome.out
    assert "etvk-guard repair" in outcome.out
    assert outcome.err == ""
    assert "\x1b" not in outcome.out


def test_quiet_prints_errors_only(cli: Cli, tree: Path) -> None:
    outcome = cli("check", "-q", tree)
    assert outcome.out == ""
    assert len(outcome.err.splitlines()) == 1
    assert "bad.pte" in outcome.err


def test_a_name_cannot_write_to_the_terminal(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    """Control characters, markup, and bytes that are no UTF-8."""
    for name in (b"\x1b[31m[red]x\x07\r\n.pte", b"\xff\xfe.pte", "a\u202etxt.pte".encode()):
        path = os.fsdecode(os.path.join(os.fsencode(tmp_path), name))
        shutil.copy(stock("one_plus"), path)
        outcome = cli("check", path)
        assert outcome.code == 1
        assert all(char.isprintable() or char == "\n" for char in outcome.out)
        assert outcome.out.encode()
        assert cli("check", "--json", path).json["files"][0]["file"] == path
    assert "\\x1b[31m[red]x" in cli("check", os.fsdecode(tmp_path)).out


def test_text_in_the_file_cannot_either(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    data = stock("one_plus").read_bytes()
    assert data.count(b"forward") == 1
    path = tmp_path / "a.pte"
    path.write_bytes(data.replace(b"forward", b"\x1b[31m\xff\n"))
    for command in ("check", "show"):
        outcome = cli(command, path)
        assert all(char.isprintable() or char == "\n" for char in outcome.out)
        assert "\\x1b[31m" in outcome.out
    assert cli("check", "--json", path).json["files"][0]["findings"][0]["method"].startswith("\x1b")


def terminal(*args: object) -> str:
    """What the command writes to a terminal on stderr, stdout being no terminal."""
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "etvk_guard", *map(str, args)]
    environment = {**os.environ, "TERM": "xterm"}
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=secondary, env=environment)
    os.close(secondary)
    parts = []
    try:
        while part := os.read(primary, 4096):
            parts.append(part)
    except OSError:
        pass  # the other end is closed
    os.close(primary)
    return b"".join(parts).decode()


def test_progress_on_a_terminal_only(cli: Cli, tree: Path) -> None:
    both = (tree / "a.pte", tree / "b/c.pte")
    assert "checking" in terminal("check", *both)
    assert terminal("check", both[0]) == ""
    assert terminal("check", "-q", *both) == ""
    assert cli("check", *both).err == ""


def test_usage_errors_exit_with_2(cli: Cli) -> None:
    assert cli("check").code == 2
    assert cli("check", "--no-such-option", "a").code == 2
    assert cli("no-such-command").code == 2
    assert cli("--version").code == 0


def test_urls(cli: Cli, stock: Stock) -> None:
    store = fsspec.filesystem("memory")
    store.pipe({"/fleet/a.pte": stock("leaf").read_bytes(), "/fleet/d/b.pte": b"no program"})
    store.pipe("/fleet/c.pte", stock("one_plus").read_bytes())
    outcome = cli("check", "--json", "memory://fleet/", "memory://none/", "memory://fleet/c.*")
    assert outcome.code == 2
    found = {
        file["file"]: [finding["code"] for finding in file["findings"]] or file["error"]
        for file in outcome.json["files"]
    }
    assert found.pop("memory:///fleet/a.pte") is None
    assert found.pop("memory:///fleet/c.pte") == ["EG101"]
    assert "EG004" in found.pop("memory:///fleet/d/b.pte")
    assert found == {"memory://none/": "memory://none/: the folder holds no .pte file"}
    fixed = cli("repair", "memory://fleet/c.pte", "-o", "memory://fleet/fixed.pte")
    assert (fixed.code, fixed.err) == (0, "")
    assert cli("check", "memory://fleet/fixed.pte").code == 0
    assert "et_vk.rms_norm" in cli("show", "memory://fleet/fixed.pte").out
    store.rm("/fleet", recursive=True)
