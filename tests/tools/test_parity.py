# SPDX-License-Identifier: Apache-2.0
"""The same JSON, text and exit codes as the Python command, on all test data."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builds import FILES, REMAINING, Outcome, damaged

Same = Callable[..., Outcome]
Copy = Callable[..., Path]

IDS = [f"{path.parent.name}-{path.stem}" for path in FILES]
METHOD = b"forward"


def test_there_are_files() -> None:
    assert len(FILES) >= 30


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_each_file(same: Same, path: Path) -> None:
    assert same("check", path, "--json").code in (0, 1)
    same("check", path)
    assert same("show", path, "--json").code == 0
    same("show", path)
    same("check", "-q", path)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_repairs(tool: Any, cli: Any, tmp_path: Path, options: list[str]) -> None:
    """The output has the same bytes and permissions, and what is printed is the same."""
    target = tmp_path / "out.pte"
    codes = []
    for path in [*FILES, REMAINING]:
        theirs = cli("repair", path, "-o", target, *options)
        expected, mode = target.read_bytes(), target.stat().st_mode
        target.unlink()
        assert tool("repair", path, "-o", target, *options) == theirs
        assert (target.read_bytes(), target.stat().st_mode) == (expected, mode)
        assert list(tmp_path.iterdir()) == [target]
        target.unlink()
        codes.append(theirs.code)
    assert set(codes) == {0, 1}


def test_many_at_once(same: Same, tmp_path: Path) -> None:
    """Files, folders in folders, links, patterns, names given twice."""
    for index, path in enumerate(FILES[:6]):
        folder = tmp_path / "in" / "/".join("b" * (index % 3)) / str(index)
        folder.mkdir(parents=True)
        shutil.copy(path, folder / path.name)
    top = tmp_path / "in"
    (top / "note.txt").write_text("no program")
    (top / "bad.pte").write_bytes(b"\x10\0\0\0ET12" + b"junk" * 10)
    (top / "link").symlink_to(tmp_path / "in/b")
    (top / "link.pte").symlink_to("bad.pte")
    (top / "folder.pte").mkdir()
    (top / "dangling.pte").symlink_to("nowhere")
    for options in ([], ["--json"], ["-q"]):
        outcome = same("check", *options, top)
        assert outcome.code == 2
        same("check", top / "b", FILES[0], f"{top}/", FILES[0], *options)
        same("check", *options, top / "*.pte", top / "?/*/*.pte", top / "[0-9]/*")
        same("check", *options, top / "*.nothing", top / "link", top / "folder.pte")


@pytest.mark.parametrize("path", FILES[::4], ids=IDS[::4])
def test_damaged_files(same: Same, path: Path, tmp_path: Path) -> None:
    """One error each or none, and the same one."""
    folder = tmp_path / "damaged"
    folder.mkdir()
    for index, data in enumerate(damaged(path.read_bytes(), 20)):
        (folder / f"{index:03}.pte").write_bytes(data)
    outcome = same("check", "--json", folder)
    results = json.loads(outcome.out)["files"]
    assert len(results) == 60
    assert {bool(result["error"]) for result in results} == {True, False}
    assert len({result["error"].split()[0] for result in results if result["error"]}) >= 4
    for index in range(0, 60, 10):
        same("show", folder / f"{index:03}.pte", "--json")
        same("repair", folder / f"{index:03}.pte", "-o", tmp_path / "out.pte", "--json")


@pytest.mark.parametrize(
    "name",
    [
        b"\x1b[31m\n\r",
        b'"\\/\b\f\t\x7f',
        b"\xff\xfe\xc0\x80 \xed\xa0",
        b"\xe2\x82\xac \xc3\xa9.",
        b"\xf0\x9f\x98\x80abc",
        b"a\xe2\x80\xae txt"[:7],
        b"\xf4\x90\x80\x80 \xc3\xa9",
        b"\xe2\x82 \xf0\x9f\x98.",
        b"[red]x.",
    ],
    ids=repr,
)
def test_text_in_a_file(same: Same, copy: Copy, name: bytes) -> None:
    """Control characters, characters outside of ASCII, bytes that are no UTF-8, markup."""
    path = copy("one_plus")
    data = path.read_bytes()
    assert data.count(METHOD) == 1
    path.write_bytes(data.replace(METHOD, name.ljust(len(METHOD))[: len(METHOD)]))
    for command in ("check", "show"):
        text = same(command, path).out
        assert all(char.isprintable() or char == "\n" for char in text)
        same(command, path, "--json")
    same("repair", path, "-o", path.with_name("out.pte"))


@pytest.mark.parametrize(
    "name",
    [
        b"\x1b[31m[red]x\x07\r\n.pte",
        b"\xff\xfe\xed\xb2\x80.pte",
        "a\u202etxt \u00fc\U0001f600.pte".encode(),
        b"a[1]*.pte",
        b"-q.pte",
    ],
    ids=repr,
)
def test_names_of_files(same: Same, copy: Copy, tmp_path: Path, name: bytes) -> None:
    path = copy("gated", name)
    for options in ([], ["--json"]):
        assert same("check", *options, path).code == 1
        assert same("show", *options, path).code == 0
        assert same("repair", *options, path, "-o", tmp_path / "out.pte").code == 0
        same("repair", *options, path, "-o", path)
        same("check", *options, tmp_path)


def numbers() -> list[float]:
    dice = random.Random(1)
    special = [0.0, -0.0, 1.0, -1.5, 1e-5, 1e-4, 1e15, 1e16, 1e17, 123456789012345680.0, 5e-324]
    special += [2.2250738585072014e-308, 1.7976931348623157e308, float("inf"), float("-inf")]
    special += [float("nan"), 0.1, 1 / 3, 9007199254740993.0, 1e22, 1e23, 100.0, 12345.678]
    return special + [struct.unpack("<d", dice.randbytes(8))[0] for _ in range(8)]


def test_numbers(same: Same, copy: Copy) -> None:
    """A norm's eps, replaced by every kind of double."""
    path = copy("one_plus")
    data = path.read_bytes()
    eps = next(
        value["value"]
        for value in json.loads(same("show", path, "--json").out)["methods"][0]["delegates"][0][
            "graph"
        ]["values"]
        if value["kind"] == "double"
    )
    old = struct.pack("<d", eps)
    assert data.count(old) == 1
    for number in numbers():
        path.write_bytes(data.replace(old, struct.pack("<d", number)))
        same("show", path, "--json")
    same("show", path)


def test_a_big_file(same: Same, copy: Copy) -> None:
    """5 GiB, nearly all of it a hole, read in no time and in little memory."""
    path = copy("one_plus")
    os.truncate(path, 5 << 30)
    for options in ([], ["--json"]):
        assert same("check", *options, path).code == 1
        assert str(5 << 30) in same("show", "--json", path).out
