# SPDX-License-Identifier: Apache-2.0
"""Programs behind URLs: fsspec's memory store, and a web server on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from etvk_guard import EtvkGuardError, check, open_program, pte, repair
from ranged_server import Sent, serve


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Sent, Path]]:
    """A server, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    with serve(folder) as sent:
        yield sent, folder


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


@pytest.fixture(scope="module")
def faulty(stock: Callable[[str], Path]) -> Path:
    return stock("one_plus")


def test_what_is_a_url() -> None:
    urls = ["s3://b/k.pte", "https://h/m.pte", "memory://m", "simplecache::s3://b/k", "FILE:///x"]
    paths: list[Any] = ["model.pte", "./a://b", "/a::b", "a:b", Path("s3://b"), b"s3://b"]
    assert all(map(pte.is_url, urls))
    assert not any(map(pte.is_url, paths))


def test_memory_gives_the_same(faulty: Path, memory: MemoryFileSystem) -> None:
    memory.pipe("/models/a.pte", faulty.read_bytes())
    url = "memory://models/a.pte"
    report = check(url)
    assert report.file == url
    assert (report.findings, report.delegates) == (check(faulty).findings, check(faulty).delegates)
    assert open_program(url).methods[0].name == "forward"
    assert repair(url).data == repair(faulty).data


@pytest.mark.parametrize("scheme", ["file://", "local://"])
def test_urls_of_this_machine_are_paths(scheme: str, faulty: Path, tmp_path: Path) -> None:
    assert check(f"{scheme}{faulty}").findings == check(faulty).findings
    repair(f"{scheme}{faulty}", f"{scheme}{tmp_path}/out.pte")
    assert (tmp_path / "out.pte").read_bytes() == repair(faulty).data
    with pytest.raises(EtvkGuardError, match="EG019"):
        repair(f"{scheme}{tmp_path}/out.pte", tmp_path / "out.pte")


def test_the_web_sends_only_what_is_needed(
    stock: Callable[[str], Path], web: tuple[Sent, Path]
) -> None:
    sent, folder = web
    url = sent.url
    data = stock("large").read_bytes()
    (folder / "a.pte").write_bytes(data)
    source = pte.RemoteFile(f"{url}/a.pte")
    assert check(source).clean
    assert source.size == len(data) > 4_000_000
    assert sum(sent.bodies) == source.fetched <= 2 * 64 * 1024
    assert len(sent.bodies) == source.requests <= 2
    assert check(f"{url}/a.pte?sig=1").delegates == check(data).delegates


def test_repair_from_the_web(faulty: Path, web: tuple[Sent, Path], tmp_path: Path) -> None:
    url, folder = web[0].url, web[1]
    (folder / "a.pte").write_bytes(faulty.read_bytes())
    result = repair(f"{url}/a.pte", tmp_path / "fixed.pte")
    assert result.complete
    assert (tmp_path / "fixed.pte").read_bytes() == repair(faulty).data
    with pytest.raises(EtvkGuardError, match="EG018"):  # this server takes no files
        repair(faulty, f"{url}/b.pte")
    assert sorted(os.listdir(folder)) == ["a.pte"]


def test_repair_within_a_store(faulty: Path, memory: MemoryFileSystem) -> None:
    memory.pipe("/a.pte", faulty.read_bytes())
    result = repair("memory://a.pte", "memory://fixed/a.pte")
    assert result.path == "memory://fixed/a.pte"
    assert memory.cat("/fixed/a.pte") == repair(faulty).data
    assert memory.cat("/a.pte") == faulty.read_bytes()
    for name in ("memory://a.pte", "memory:///a.pte"):
        with pytest.raises(EtvkGuardError, match="EG019"):
            repair("memory://a.pte", name)
    assert memory.cat("/a.pte") == faulty.read_bytes()


@pytest.mark.parametrize("target", ["memory://out.pte", "out.pte"])
def test_an_input_that_is_replaced_meanwhile(
    target: str, faulty: Path, memory: MemoryFileSystem, tmp_path: Path, monkeypatch: Any
) -> None:
    """Nothing is written, and what was there stays."""
    memory.pipe("/a.pte", faulty.read_bytes())
    memory.pipe("/out.pte", b"before")
    (tmp_path / "out.pte").write_bytes(b"before")
    ask = pte.RemoteFile._ask

    def replaced(self: pte.RemoteFile) -> Any:
        found = ask(self)
        memory.pipe("/a.pte", faulty.read_bytes() + b"\0")
        return found

    monkeypatch.setattr(pte.RemoteFile, "_ask", replaced)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EtvkGuardError) as caught:
        repair("memory://a.pte", target)
    assert "changed while it was read" in f"{caught.value} {caught.value.__cause__}"
    assert memory.cat("/out.pte") == b"before"
    assert (tmp_path / "out.pte").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["out.pte"]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_read_that_fails(
    failing: int, faulty: Path, memory: MemoryFileSystem, monkeypatch: Any
) -> None:
    memory.pipe("/a.pte", faulty.read_bytes())
    calls = 0
    cat = MemoryFileSystem.cat_file

    def fails(self: MemoryFileSystem, path: str, **kwargs: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls > failing:
            raise ConnectionResetError("gone")
        return bytes(cat(self, path, **kwargs))

    monkeypatch.setattr(MemoryFileSystem, "cat_file", fails)
    with pytest.raises(EtvkGuardError, match="EG001") as caught:
        repair(pte.RemoteFile("memory://a.pte", block=64), "memory://out.pte")
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert not memory.exists("/out.pte")


class Wide(MemoryFileSystem):
    """Sends more, or less, than it is asked for."""

    protocol = "wide"
    by = 1

    def cat_file(self, path: str, start: Any = None, end: Any = None, **_: Any) -> bytes:
        return bytes(super().cat_file(path, start=start, end=end + self.by))


@pytest.mark.parametrize("by", [1, -1])
def test_a_server_that_ignores_ranges(
    by: int, faulty: Path, memory: MemoryFileSystem, monkeypatch: Any
) -> None:
    fsspec.register_implementation("wide", Wide, clobber=True)
    monkeypatch.setattr(Wide, "by", by)
    memory.pipe("/a.pte", faulty.read_bytes())
    with pytest.raises(EtvkGuardError, match="EG001"):
        check(pte.RemoteFile("wide://a.pte", block=1))


ERRORS = {
    "missing": ("memory://missing.pte", "EG001"),
    "folder": ("memory://folder", "EG002"),
    "empty": ("memory://empty.pte", "EG003"),
    "page": ("memory://page.pte", "EG004"),
    "unknown": ("nothing://a.pte", "EG001"),
    "no server": ("http://127.0.0.1:9/a.pte", "EG001"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_url(case: str, memory: MemoryFileSystem) -> None:
    url, code = ERRORS[case]
    memory.pipe({"/folder/a.pte": b"x", "/empty.pte": b"", "/page.pte": b"<html>" * 20})
    with pytest.raises(EtvkGuardError) as caught:
        check(url)
    assert caught.value.code == code
    assert caught.value.file == url
    assert url in str(caught.value)


def test_missing_on_the_web(web: tuple[Sent, Path]) -> None:
    with pytest.raises(EtvkGuardError, match="EG001"):
        check(f"{web[0].url}/missing.pte")


def test_find_programs(memory: MemoryFileSystem) -> None:
    memory.pipe({"/m/a.pte": b"x", "/m/deep/b.pte": b"x", "/m/c.txt": b"x"})
    both = ["memory:///m/a.pte", "memory:///m/deep/b.pte"]
    assert pte.find_programs("memory://m/") == both
    assert pte.find_programs("memory://m/*.pte") == both[:1]
    assert pte.find_programs("memory://m/**/*.pte") == both
    assert pte.find_programs("https://h/a.pte?x=1") == ["https://h/a.pte?x=1"]
    for nothing in ("memory://m/*.bin", "memory://none/"):
        with pytest.raises(EtvkGuardError, match="EG001"):
            pte.find_programs(nothing)


def test_without_fsspec(monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(EtvkGuardError, match=r"URLs need fsspec.*extra `remote`"):
        check("s3://bucket/a.pte")


def test_threads_share_a_file(faulty: Path, memory: MemoryFileSystem) -> None:
    data = faulty.read_bytes()
    memory.pipe("/a.pte", data)
    source = pte.RemoteFile("memory://a.pte", block=100)
    wrong: list[int] = []

    def reads(step: int) -> None:
        for offset in range(0, len(data) - 50, step):
            if source.read(offset, 50) != data[offset : offset + 50]:
                wrong.append(offset)

    threads = [threading.Thread(target=reads, args=(step,)) for step in (7, 31, 64, 101)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
