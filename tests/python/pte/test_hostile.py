# SPDX-License-Identifier: Apache-2.0
"""Damaged files: one clear error each, no crash, no output file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etvk_guard import EtvkGuardError, check, contract, open_program, repair

CODES = {error.code for error in contract.errors()}
DEFECTS = {"EG020", "EG022"}  # recheck-failed, internal: never the file's fault
NAMES = ("one_plus", "layer_norm_bare", "split", "methods")


@pytest.fixture(scope="module", params=NAMES)
def data(request: pytest.FixtureRequest, stock: Callable[[str], Path]) -> bytes:
    return stock(request.param).read_bytes()


def last_byte(data: bytes) -> int:
    """The end of what the program refers to; there may be padding behind it."""
    return max(offset + size for offset, size in open_program(data).segments)


def test_every_prefix_fails_and_the_whole_passes(data: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out.pte"
    for length in range(last_byte(data)):
        with pytest.raises(EtvkGuardError) as caught:
            repair(data[:length], out)
        assert caught.value.code in CODES - DEFECTS
    assert not list(tmp_path.iterdir())
    assert check(data).findings


def walk(data: bytes) -> None:
    """Look at everything that there is to see in a program."""
    program = open_program(data)
    assert all(offset + size <= len(data) for offset, size in program.segments)
    for key in program.named_data:
        program.named_bytes(key)
    for method in program.methods:
        list(method.values)
        list(method.instructions)
        for delegate in method.delegates:
            program.read(delegate.offset, delegate.size)
            if delegate.graph is None:
                continue
            list(delegate.graph.ops)
            list(delegate.graph.values)
            for index, constant in enumerate(delegate.graph.constants):
                if constant.offset is not None:
                    delegate.graph.constant_bytes(index)


def survives(data: bytes) -> None:
    """Either an error from the table, or a program that can be walked, and repaired to itself."""
    code = None
    try:
        walk(data)
        first = repair(data, None)
    except EtvkGuardError as error:
        code = error.code
    if code is not None:
        assert code in CODES - DEFECTS
        return
    second = repair(first.data, None)
    assert not second.changed
    assert second.data == first.data


FUZZ = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@FUZZ
@given(
    edits=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)),
        min_size=1,
        max_size=4,
    )
)
def test_overwritten_bytes(data: bytes, edits: list[tuple[float, bytes]]) -> None:
    damaged = bytearray(data)
    for place, new in edits:
        start = int(place * len(data))
        damaged[start : start + len(new)] = new
    survives(bytes(damaged))


SPECIAL = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC]


@FUZZ
@given(
    words=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from(SPECIAL)),
        min_size=1,
        max_size=3,
    )
)
def test_words_of_the_flatbuffers(data: bytes, words: list[tuple[float, int]]) -> None:
    """Aligned words, where offsets, counts and indices lie, get the values that break checks."""
    damaged = bytearray(data)
    for place, word in words:
        start = int(place * (len(data) // 4)) * 4
        damaged[start : start + 4] = word.to_bytes(4, "little")
    survives(bytes(damaged))


@FUZZ
@given(
    cut=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    filler=st.binary(max_size=64),
)
def test_bytes_cut_out_or_put_in(data: bytes, cut: tuple[float, float], filler: bytes) -> None:
    start, end = sorted(int(place * len(data)) for place in cut)
    survives(data[:start] + filler + data[end:])


@given(junk=st.binary(max_size=512))
def test_junk(junk: bytes) -> None:
    with pytest.raises(EtvkGuardError) as caught:
        check(junk)
    assert caught.value.code in CODES - DEFECTS


@given(junk=st.binary(max_size=512))
def test_junk_with_the_right_magic(junk: bytes) -> None:
    survives(b"\x10\0\0\0ET12" + junk)
