# SPDX-License-Identifier: Apache-2.0
"""What a file says cannot write to the terminal, nor be read as markup; and `show` ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import pytest

from crafted import STRING, VALUE_LIST, graph, op, program, table, tensor, value, vector

Cli = Callable[..., Any]

# Control characters of both sets, what starts a sequence, what reverses text, bytes that are no
# UTF-8, and rich's markup.
HOSTILE = [
    b"\x1b]0;owned\x07\x1b[2J\x1b[31m",
    b"\x9b31m\x90q\x9c",
    "\x9b31m\u202e\u2066\u200f\u2028\ufeff".encode(),
    b"\r\n\b\t\x7f\x00\xff\xfe",
    b"[red]bold[/red] [link=file:///etc/passwd]x[/link] :smile:",
]


def texts(name: bytes, last: int = 1) -> bytes:
    """A program that has this text where a graph can hold one."""
    builder = flatbuffers.Builder()
    values = [tensor(builder, 1, 4), tensor(builder, 1, 4)]
    text = builder.CreateString(name)
    values.append(value(builder, STRING, table(builder, {0: ("UOffsetTRelative", text)})))
    calls = [op(builder, name, [0, 2, last]), op(builder, "et_vk.rms_norm.default", [0, 1, 2, 1])]
    return program(graph(builder, values, calls, [0], [1]))


def only_text(said: str, name: bytes) -> None:
    assert all(char.isprintable() or char == "\n" for char in said)
    assert said.encode()  # no lone surrogates either
    shown = name.decode("utf-8", "surrogateescape")
    if shown.isprintable():
        assert shown in said  # as it is: neither markup nor emoji
    else:
        assert "\\x" in said


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("command", ["check", "show", "repair"])
def test_only_text(command: str, name: bytes, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "in.pte"
    path.write_bytes(texts(name))
    more = ["-o", tmp_path / "out.pte"] if command == "repair" else []
    outcome = cli(command, path, *more)
    only_text(outcome.out + outcome.err, name)
    as_json = cli(command, path, "--json", *more).out
    assert as_json.isascii()
    assert json.loads(as_json)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_errors_are_text_too(name: bytes, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "in.pte"
    path.write_bytes(texts(name, last=99))
    for command in ("check", "show"):
        outcome = cli(command, path)
        assert outcome.code == 2
        assert "EG013" in outcome.err
        only_text(outcome.err, name)


VALUES, INPUTS = 6_000, 100_000


def test_show_takes_time_in_proportion(cli: Cli, tmp_path: Path) -> None:
    """Each value is asked for among very many inputs and outputs: a megabyte."""
    builder = flatbuffers.Builder()
    content = table(builder, {0: ("UOffsetTRelative", vector(builder, []))})
    values = [value(builder, VALUE_LIST, content)] * VALUES
    path = tmp_path / "in.pte"
    path.write_bytes(program(graph(builder, values, [], [0] * INPUTS, [1] * INPUTS)))
    assert path.stat().st_size < 1_000_000
    started = time.process_time()
    outcome = cli("show", path)
    assert time.process_time() - started < 6
    assert outcome.code == 0
    assert outcome.out.count("value_list ()") == VALUES
    assert outcome.out.count(" input\n") == outcome.out.count(" output\n") == 1
