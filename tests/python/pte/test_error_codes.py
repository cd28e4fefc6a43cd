# SPDX-License-Identifier: Apache-2.0
"""Every code of the table's errors is raised by some input, the smallest that does."""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crafted import SMALL
from etvk_guard import EtvkGuardError, check, contract, open_program, repair


def extended(length: int = 32, program: int = 40, base: int = 0, data: int = 0) -> bytes:
    return b"\x28\0\0\0ET12eh00" + struct.pack("<IQQQ", length, program, base, data)


class Claims:
    """Says that it has more bytes than are kept; the rest would be zeros."""

    def __init__(self, head: bytes, size: int) -> None:
        self.head, self.size = head, size

    def read(self, offset: int, size: int) -> bytes:
        return self.head[offset : offset + size].ljust(size, b"\0")


TWO_GB = 1 << 31
SMALLEST: dict[str, Any] = {
    "EG001": Path("/nonexistent/model.pte"),
    "EG002": Path("/"),
    "EG003": b"",
    "EG004": b"\0",
    "EG005": b"\0\0\0\0ET12eh00",
    "EG006": extended(length=0)[:32],
    "EG007": b"\0\0\0\0ET12",
    "EG015": b"\0\0\0\0ET13",
    "EG017": Claims(extended(program=TWO_GB), TWO_GB),
}
# What one changed word of the smallest real program comes to.
BY_A_WORD = {"EG008", "EG010", "EG011", "EG012", "EG013"}
# Tests of their own, below and in C++ (open_test.cpp, write_test.cpp).
ELSEWHERE = {
    "EG009": "OpenCase segments_overlap",
    "EG014": "OpenCase constants",
    "EG018": "test_output_codes",
    "EG019": "test_output_codes",
    "EG020": "Write.WhatIsWrittenMustPass, Write.AProgramIsOpenedAndCheckedAgain",
    "EG021": "test_out_of_memory",
}
# Kept in the table for readers of older releases' output, or for what cannot be; nothing raises
# them.
NOT_RAISED = {"EG016", "EG022"}


def test_every_code_is_here() -> None:
    assert {error.code for error in contract.errors()} == (
        set(SMALLEST) | BY_A_WORD | set(ELSEWHERE) | NOT_RAISED
    )


@pytest.mark.parametrize("code", SMALLEST)
def test_smallest(code: str) -> None:
    with pytest.raises(EtvkGuardError) as caught:
        check(SMALLEST[code])
    assert caught.value.code == code


@pytest.mark.parametrize(
    "code", [code for code, data in SMALLEST.items() if isinstance(data, bytes) and data]
)
def test_nothing_smaller(code: str) -> None:
    """A byte less is another error."""
    with pytest.raises(EtvkGuardError) as caught:
        check(SMALLEST[code][:-1])
    assert caught.value.code != code


def test_one_changed_word() -> None:
    whole = SMALL.read_bytes()
    graph = open_program(whole).methods[0].delegates[0].graph
    assert graph is not None
    found: set[str] = set()
    for at in range(0, graph.offset + len(graph.flatbuffer) - 3, 2):
        for word in (0, 1, 6, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF):
            data = bytearray(whole)
            struct.pack_into("<I", data, at, word)
            try:
                check(bytes(data))
            except EtvkGuardError as error:
                found.add(error.code)
    assert found >= BY_A_WORD
    assert found.isdisjoint(NOT_RAISED | {"EG018", "EG019", "EG020", "EG021"})


def test_output_codes(tmp_path: Path) -> None:
    path = tmp_path / "in.pte"
    path.write_bytes(SMALL.read_bytes())
    for out, code in ((tmp_path, "EG018"), (path, "EG019")):
        with pytest.raises(EtvkGuardError) as caught:
            repair(path, out)
        assert caught.value.code == code
    assert list(tmp_path.iterdir()) == [path]


def out_of_memory() -> None:
    """In a process of its own: a flatbuffer of nearly 2 GB where there is room for half of it."""
    with open("/proc/self/statm") as pages:
        taken = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 30), -1))
    size = TWO_GB - 16
    try:
        check(Claims(extended(program=size), size))
    except EtvkGuardError as error:
        print(error.code)


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")
def test_out_of_memory() -> None:
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import test_error_codes as t; t.out_of_memory()"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code.replace("[:0] = [", f"[:0] = [{here!r}, ")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == ("EG021", 0), done.stderr
