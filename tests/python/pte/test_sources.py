# SPDX-License-Identifier: Apache-2.0
"""Everything that a program can be read from gives the same report."""

from __future__ import annotations

import io
import mmap
import os
import sys
import threading
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etvk_guard import EtvkGuardError, check, open_program, repair


class Ranges:
    """`read(offset, size)` and `size`; counts the bytes that were asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked = 0

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> bytes:
        self.asked += size
        return self.data[offset : offset + size]


class SizeMethod(Ranges):
    @property
    def size(self) -> Any:
        return lambda: len(self.data)


class Dribble(io.BytesIO):
    """A file whose reads are short."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 0, 100) if size and size > 0 else size)


def mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


SOURCES: dict[str, Callable[[Path], Any]] = {
    "str": str,
    "path": lambda path: path,
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "slice": lambda path: memoryview(b"12345" + path.read_bytes() + b"6")[5:-1],
    "mmap": mapped,
    "mmap object": lambda path: mapped(path).obj,
    "array": lambda path: array("B", path.read_bytes()),
    "numpy": lambda path: np.frombuffer(path.read_bytes(), dtype=np.int16),
    "bytesio": lambda path: io.BytesIO(path.read_bytes()),
    "short reads": lambda path: Dribble(path.read_bytes()),
    "file": lambda path: path.open("rb"),
    "unbuffered file": lambda path: path.open("rb", buffering=0),
    "ranges": lambda path: Ranges(path.read_bytes()),
    "size method": lambda path: SizeMethod(path.read_bytes()),
}


@pytest.fixture(scope="module")
def faulty(stock: Callable[[str], Path]) -> Path:
    return stock("one_plus")


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same(kind: str, faulty: Path) -> None:
    source = SOURCES[kind](faulty)
    report = check(source)
    expected = check(faulty)
    assert [f.code for f in report.findings if f.severity == "error"] == ["EG101"]
    assert report.findings == expected.findings
    assert report.delegates == expected.delegates
    assert report.file == (str(faulty) if kind in ("str", "path") else None)
    assert repair(source, None).data == repair(faulty, None).data
    if hasattr(source, "close"):
        source.close()


def test_a_name_that_is_not_utf8(faulty: Path, tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"\xff\xfe model.pte")
    with open(name, "wb") as file:
        file.write(faulty.read_bytes())
    report = check(os.fsdecode(name))
    assert report.findings
    assert report.file == os.fsdecode(name)
    result = repair(os.fsdecode(name), os.fsdecode(name + b".fixed"))
    assert check(os.fsdecode(name + b".fixed")).delegates == check(result.data).delegates


def test_weights_are_not_read(stock: Callable[[str], Path]) -> None:
    """The weight of this program, a segment of 4 MB, stays where it is."""
    path = stock("large")
    source = Ranges(path.read_bytes())
    assert check(source).clean
    assert source.size > 4_000_000
    assert source.asked < 100_000


def test_a_bytearray_can_change_after_it_was_opened(faulty: Path) -> None:
    data = bytearray(faulty.read_bytes())
    program = open_program(data)
    with pytest.raises(BufferError):
        data.clear()  # held: resizing is refused
    data[:] = bytes(len(data))
    assert [op.name for op in program.methods[0].delegates[0].graph.ops]  # type: ignore[union-attr]
    assert program.check().findings


def test_views_keep_the_source(faulty: Path) -> None:
    graph = open_program(faulty.read_bytes()).methods[0].delegates[0].graph
    assert graph is not None
    flatbuffer = graph.flatbuffer
    ops = graph.ops
    del graph
    assert bytes(flatbuffer[4:8]) == b"VK00"
    assert flatbuffer.readonly
    assert ops[-1].name == "et_vk.rms_norm.default"


def test_reads_come_from_many_threads(faulty: Path) -> None:
    """One seekable file, eight threads: reads are not mixed up."""
    file = io.BytesIO(faulty.read_bytes())
    expected = check(faulty).findings
    failures: list[object] = []

    def work() -> None:
        for _ in range(20):
            if check(file).findings != expected:
                failures.append("another report")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


class Broken(Ranges):
    def read(self, offset: int, size: int) -> bytes:
        raise self.failure

    failure: BaseException = OSError(5, "the disk is gone")


def test_the_exception_of_a_source_is_the_cause() -> None:
    source = Broken(b"x" * 100)
    with pytest.raises(EtvkGuardError) as caught:
        check(source)
    assert caught.value.code == "EG001"
    assert caught.value.__cause__ is source.failure


def test_an_interrupt_is_not_swallowed() -> None:
    source = Broken(b"x" * 100)
    source.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        check(source)


@pytest.mark.parametrize("give", [b"", b"x" * 1000, "text", None, 7])
def test_a_source_that_does_not_keep_its_word(give: Any) -> None:
    source = Ranges(b"x" * 100)
    source.read = lambda offset, size: give  # type: ignore[method-assign]
    with pytest.raises(EtvkGuardError) as caught:
        check(source)
    assert caught.value.code == "EG001"
    assert caught.value.__cause__ is not None


def test_a_text_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pte"
    path.write_text("x" * 100)
    with path.open() as file, pytest.raises(EtvkGuardError) as caught:
        check(file)  # type: ignore[arg-type]
    assert isinstance(caught.value.__cause__, TypeError)


def test_what_cannot_be_read_at_random(faulty: Path) -> None:
    ends = os.pipe()
    with open(ends[1], "wb"), open(ends[0], "rb") as pipe, faulty.open("rb") as closed:
        closed.close()
        for source in (pipe, closed):
            with pytest.raises(EtvkGuardError, match="EG001 io-error: the source cannot be read"):
                check(source)
    released = memoryview(b"ET12")
    released.release()
    with pytest.raises(EtvkGuardError, match=r"EG001 io-error: .*released"):
        check(released)
    with pytest.raises(TypeError, match="contiguous"):
        check(memoryview(faulty.read_bytes())[::2])


@pytest.mark.parametrize("size", [-1, 1 << 70])
def test_a_size_that_is_none(size: int, faulty: Path) -> None:
    class Lying(Ranges):
        @property
        def size(self) -> int:
            return size

    with pytest.raises(EtvkGuardError, match=f"EG001 .*it has {size} bytes"):
        check(Lying(faulty.read_bytes()))


def test_the_input_is_known_by_whatever_reads_it(faulty: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.pte"
    path.write_bytes(faulty.read_bytes())
    with path.open("rb") as file, pytest.raises(EtvkGuardError, match="EG019"):
        repair(file, path)
    with pytest.raises(EtvkGuardError, match="EG019"):
        repair(repair(path).overlay, path)
    assert path.read_bytes() == faulty.read_bytes()


@pytest.mark.parametrize("source", [None, 3, object(), ["model.pte"], lambda: b""])
def test_other_objects_are_a_type_error(source: Any) -> None:
    with pytest.raises(TypeError, match="src must be"):
        check(source)


def test_null_bytes_in_paths(faulty: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null byte"):
        check(f"{faulty}\0.txt")
    with pytest.raises(ValueError, match="null byte"):
        repair(faulty, f"{tmp_path}/a\0b")
    assert list(tmp_path.iterdir()) == []


PATHS: list[tuple[str, str, str]] = [
    ("missing", "EG001", "io-error"),
    ("folder", "EG002", "not-a-file"),
    ("fifo", "EG002", "not-a-file"),
    ("empty", "EG003", "empty-file"),
    ("text", "EG004", "not-a-pte"),
]


@pytest.mark.parametrize(("kind", "code", "name"), PATHS)
def test_paths_that_are_no_programs(kind: str, code: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind != "missing":
        path.write_text("" if kind == "empty" else "<html>" * 20)
    for call in (check, open_program, lambda p: repair(p, tmp_path / "out.pte")):
        with pytest.raises(EtvkGuardError) as caught:
            call(path)  # type: ignore[operator]
        error = caught.value
        assert (error.code, error.name) == (code, name)
        assert str(path) in error.message
        assert str(error).startswith(f"{code} {name}: ")
        assert error.advice
        assert error.advice in error.message
    assert not (tmp_path / "out.pte").exists()


def test_objects_are_let_go(faulty: Path) -> None:
    data = Ranges(faulty.read_bytes())
    before = sys.getrefcount(data)
    program = open_program(data)
    assert sys.getrefcount(data) > before
    del program
    assert sys.getrefcount(data) == before
