# SPDX-License-Identifier: Apache-2.0
"""What cannot be read, written or understood, as the Python command says it."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builds import DATA, Outcome

from etvk_guard import __version__

Same = Callable[..., Outcome]
Copy = Callable[..., Path]

BOTH = pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
MACHINES = {"x86_64": 62, "aarch64": 183, "arm": 40}
NOBODY = 65534


@BOTH
def test_inputs(same: Same, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "empty.pte").touch()
    (tmp_path / "junk.pte").write_bytes(b"junk" * 100)
    os.mkfifo(tmp_path / "pipe.pte")
    names = ["missing.pte", "empty.pte", "junk.pte", "pipe.pte", "empty.pte/below", ".", ""]
    for name in names:
        path = tmp_path / name if name else ""
        assert same("check", path, *options).code == 2
        assert same("show", path, *options).code == 2
        outcome = same("repair", path, "-o", tmp_path / "out.pte", *options)
        assert outcome.code == 2
        assert ("EG" in outcome.out) == bool(options)
    assert not (tmp_path / "out.pte").exists()


@BOTH
def test_errors_in_other_words(tool: Any, cli: Any, tmp_path: Path, options: list[str]) -> None:
    """Only the code is the same where C libraries have other words for the system's error."""
    (tmp_path / "loop.pte").symlink_to("loop.pte")
    for path in (tmp_path / "loop.pte", tmp_path / ("x" * 300)):
        mine, theirs = tool("check", path, *options), cli("check", path, *options)
        assert mine.code == theirs.code == 2
        assert "EG001 io-error: " in mine.out + mine.err
        assert "EG001 io-error: " in theirs.out + theirs.err


@BOTH
def test_outputs(same: Same, copy: Copy, tmp_path: Path, options: list[str]) -> None:
    """The input itself, links to it, places where no file can be."""
    path = copy("one_plus")
    before = path.read_bytes()
    (tmp_path / "link.pte").symlink_to(path)
    os.link(path, tmp_path / "hard.pte")
    (tmp_path / "dangling.pte").symlink_to(tmp_path / "nowhere/x")
    names = ["in.pte", "link.pte", "hard.pte", "no/folder.pte", "in.pte/below", ".", "dangling.pte"]
    for target in [*(tmp_path / name for name in names), "/dev/null", "/sys/out.pte", ""]:
        assert same("repair", path, "-o", target, *options).code == 2, target
    assert path.read_bytes() == before
    left = sorted(item.name for item in tmp_path.iterdir())
    assert left == ["dangling.pte", "hard.pte", "in.pte", "link.pte"]


def test_an_output_that_exists_is_replaced(tool: Any, copy: Copy, tmp_path: Path) -> None:
    """Whole, with its own permissions, and through a link."""
    path, target = copy("one_plus"), tmp_path / "out.pte"
    assert tool("repair", path, "-o", target).code == 0
    expected = target.read_bytes()
    target.write_bytes(b"older")
    target.chmod(0o640)
    (tmp_path / "link.pte").symlink_to(target)
    assert tool("repair", path, "-o", tmp_path / "link.pte").code == 0
    assert (tmp_path / "link.pte").is_symlink()
    assert target.read_bytes() == expected
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.fixture
def public(tool: Any) -> Iterator[tuple[Any, Path]]:
    """The tool, and a folder, where other users reach them."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    shutil.copy(tool.path, folder / "tool")
    yield replace(tool, path=folder / "tool"), folder
    shutil.rmtree(folder)


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """Without root's right to read and write everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    yield
    os.seteuid(0)


@BOTH
def test_no_permission(
    public: tuple[Any, Path], cli: Any, options: list[str], request: pytest.FixtureRequest
) -> None:
    tool, folder = public
    closed, opened = folder / "closed.pte", folder / "open.pte"
    for path in (closed, opened):
        shutil.copy(DATA / "1.5.1/one_plus.pte", path)
    closed.chmod(0)
    (folder / "shut").mkdir(mode=0)
    folder.chmod(0o555)
    request.getfixturevalue("as_nobody")
    commands: list[list[object]] = [["check", closed], ["show", closed], ["check", folder]]
    commands += [["check", folder / "shut"], ["repair", closed, "-o", folder / "out.pte"]]
    commands += [["repair", opened, "-o", folder / "out.pte"]]
    for command in commands:
        mine, theirs = tool(*command, *options), cli(*command, *options)
        renamed = mine.out.replace("`etvk-guard-pte repair", "`etvk-guard repair")
        assert (mine.code, renamed, mine.err) == (2, theirs.out, theirs.err)
        assert theirs.code == 2
        assert "Permission denied" in mine.out + mine.err


USAGE = [
    [],
    ["--version"],
    ["--help"],
    ["-h"],
    ["--nothing"],
    ["no-such-command"],
    ["check"],
    ["check", "--help"],
    ["check", "-qh"],
    ["check", "--nothing", "FILE"],
    ["check", "--json=1", "FILE"],
    ["check", "-x", "FILE"],
    ["check", "-o", "out", "FILE"],
    ["check", "--", "--json"],
    ["check", "-", "FILE"],
    ["check", "--json", "-q", "FILE", "--"],
    ["repair", "FILE"],
    ["repair", "-o", "OUT"],
    ["repair", "FILE", "-o"],
    ["repair", "FILE", "-oOUT"],
    ["repair", "FILE", "--output=OUT"],
    ["repair", "--output", "OUT", "FILE"],
    ["repair", "FILE", "FILE", "-o", "OUT"],
    ["repair", "FILE", "--output="],
    ["repair", "FILE", "-q", "-o", "OUT"],
    ["repair", "--help"],
    ["show"],
    ["show", "FILE", "FILE"],
    ["show", "FILE", "--quiet"],
    ["show", "-h", "FILE"],
]


@pytest.mark.parametrize("args", USAGE, ids=" ".join)
def test_usage(
    tool: Any, cli: Any, copy: Copy, args: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same exit codes; the words are each one's own."""
    path = copy("gated")
    monkeypatch.chdir(path.parent)
    args = [{"FILE": "in.pte", "OUT": "out.pte"}.get(arg, arg) for arg in args]
    args = [arg.replace("OUT", "out.pte") for arg in args]
    theirs, mine = cli(*args), tool(*args)
    assert mine.code == theirs.code
    assert bool(mine.err) == (mine.code == 2 and args != [])


def test_version_and_help(tool: Any) -> None:
    assert tool("--version").out == f"etvk-guard-pte {__version__}\n"
    text = tool("--help").out
    assert all(command in text for command in ("check", "repair", "show"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("args", [["check"], ["show", "--json"], ["check", "--json"]])
def test_output_that_cannot_be_written(tool: Any, args: list[str]) -> None:
    command = [*tool.command, *args, str(DATA / "1.5.1/split.pte")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "etvk-guard-pte: cannot write the output: No space left on device\n"


def test_a_closed_pipe(tool: Any) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*tool.command, "show", str(DATA / "1.5.1/split.pte")]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (2, b"")


def test_it_is_one_small_static_program(tool: Any) -> None:
    """Under 2 MB, of the machine it says, and without an interpreter or a dynamic section."""
    data = tool.path.read_bytes()
    assert len(data) < 2_000_000
    wide = data[4] == 2
    layout = "<16xHHIQQQIHHHHHH" if wide else "<16xHHIIIIIHHHHHH"
    fields = struct.unpack_from(layout, data)
    machine, offset, size, count = fields[1], fields[4], fields[8], fields[9]
    assert machine == MACHINES[tool.machine]
    kinds = [struct.unpack_from("<I", data, offset + index * size)[0] for index in range(count)]
    assert 1 in kinds  # PT_LOAD
    assert not {2, 3} & set(kinds)  # PT_DYNAMIC, PT_INTERP
