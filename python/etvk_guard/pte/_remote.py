# SPDX-License-Identifier: Apache-2.0
"""Programs that lie elsewhere: URLs of fsspec (s3://, gs://, https://, memory://, ...).

Only the ranges that a check needs are fetched, a block at a time. fsspec is an optional extra and
is imported only where a URL is used; credentials and options come from its own configuration.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from etvk_guard.pte._errors import EtvkGuardError

__all__ = [
    "RemoteFile",
    "failure",
    "find_programs",
    "is_url",
    "local_path",
    "same_file",
    "write_remote",
]

BLOCK = 64 * 1024  # holds header, flatbuffer and graph of most programs: one request
KEPT = 8  # blocks
CHUNK = 8 * 1024 * 1024  # of a repaired program, written at a time
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")


def is_url(name: object) -> bool:
    """Whether a source or a destination is a URL rather than a path."""
    return isinstance(name, str) and _URL.match(name) is not None


def _file_system(url: str, **options: Any) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the file's name in it."""
    with _io_errors(url):
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise failure(
                "EG001",
                "URLs need fsspec",
                url,
                "It comes with etvk-guard's extra `remote`.",
            ) from error
        fs, path = url_to_fs(url, **options)
        return fs, path


def local_path(url: str) -> str | None:
    """The path that a URL of this machine's own files names, else None."""
    if not url.lower().startswith(("file://", "local://")):
        return None
    return str(_file_system(url)[1])


def find_programs(url: str) -> list[str]:
    """The programs that a URL stands for, in order.

    A URL that ends with / is a folder, searched for `*.pte` in all its depth; one with * or [ (and
    ?, where it is no web address) a pattern; any other stands for itself.

    Raises:
        EtvkGuardError: the folder cannot be listed, or nothing is found (EG001).
    """
    magic = "*[" if url.startswith(("http://", "https://")) else "*[?"
    is_pattern = any(char in url for char in magic)
    if not is_pattern and not url.endswith("/"):
        return [url]
    fs, path = _file_system(url)
    with _io_errors(url):
        found = fs.glob(path) if is_pattern else fs.find(path)
        names = sorted(name for name in map(str, found) if is_pattern or name.endswith(".pte"))
        if not names:
            nothing = "nothing matches this pattern"
            raise failure("EG001", nothing if is_pattern else "the folder holds no .pte file", url)
        return [str(fs.unstrip_protocol(name)) for name in names]


class RemoteFile:
    """A file that fsspec reads, with `size` and `read(offset, size)` as `check` takes them.

    Small reads fetch a block, and the last few blocks are kept; larger ones go through. Safe to use
    from several threads.

    Attributes:
        url: what it was opened by.
        size: bytes in all.
        requests: how many ranges were fetched, the question for the size not counted.
        fetched: bytes fetched.
    """

    def __init__(self, url: str, block: int = BLOCK) -> None:
        """Ask for the file's size. Raises EtvkGuardError where there is no such file."""
        self.url = url
        self.requests = 0
        self.fetched = 0
        self._block = max(block, 1)
        self._kept: list[tuple[int, bytes]] = []
        self._last: int | None = None
        self._lock = threading.Lock()
        self._fs, self.path = _file_system(url)
        self._info = self._ask()
        if self._info.get("type") == "directory":
            raise failure("EG002", "this is a folder", url, "End its name with / to check it.")
        size = self._info.get("size")
        if not isinstance(size, int) or size < 0:
            raise failure("EG001", "the server does not say how long the file is", url)
        if size == 0:
            raise failure("EG003", "the file is empty", url)
        self.size: int = size

    def _ask(self) -> dict[str, Any]:
        with _io_errors(self.url):
            return dict(self._fs.info(self.path))

    def read(self, offset: int, size: int, /) -> bytes:
        """`size` bytes from `offset`; fewer where the file ends. Raises what fsspec raises."""
        data = self._read(offset, size)
        if offset + size == self._last:
            self._expect_unchanged()
        return data

    def _read(self, offset: int, size: int) -> bytes:
        with self._lock:
            for start, data in self._kept:
                if start <= offset and offset + size <= start + len(data):
                    return data[offset - start : offset - start + size]
        end = min(offset + max(size, self._block), self.size)
        data = self._fetch(offset, end)
        if len(data) > self._block:
            return data[:size]
        with self._lock:
            self._kept = [(offset, data), *self._kept][:KEPT]
        return data[:size]

    def _fetch(self, start: int, end: int) -> bytes:
        data = bytes(self._fs.cat_file(self.path, start=start, end=end))
        with self._lock:
            self.requests += 1
            self.fetched += len(data)
        if len(data) > end - start:
            raise OSError(f"asked for {end - start} bytes at {start}, the server sent {len(data)}")
        return data

    def expect_unchanged_at(self, end: int) -> None:
        """Let the read that ends at byte `end` fail if the file is not the one that was opened."""
        self._last = end

    def _expect_unchanged(self) -> None:
        self._fs.invalidate_cache(self._fs._parent(self.path))
        if self._ask() != self._info:
            raise failure("EG001", "the file changed while it was read", self.url, "Try again.")


def same_file(one: str, other: str) -> bool:
    """Whether two URLs name one file of one file system."""
    (fs, path), (other_fs, other_path) = _file_system(one), _file_system(other)
    return type(fs) is type(other_fs) and fs == other_fs and path == other_path


def write_remote(read: Any, size: int, url: str) -> None:
    """Write the `size` bytes that `read(offset, size)` gives to `url`, whole or not at all.

    The name appears when the last byte has been taken (fsspec's transactions); afterwards the
    file is asked for its size. Raises EtvkGuardError (EG018).
    """
    fs, path = _file_system(url, skip_instance_cache=True)
    with _io_errors(url, "EG018"):
        before = fs.exists(path)
        try:
            with fs.transaction, fs.open(path, "wb") as out:
                for offset in range(0, size, CHUNK):
                    out.write(read(offset, min(CHUNK, size - offset)))
        except BaseException:
            if not before and fs.exists(path):
                fs.rm_file(path)
            raise
        fs.invalidate_cache(fs._parent(path))
        written = fs.info(path)["size"]
    if written != size:
        raise failure("EG018", f"{written} of {size} bytes are there after writing", url)


@contextmanager
def _io_errors(url: str, code: str = "EG001") -> Iterator[None]:
    """What fsspec raises inside becomes an EtvkGuardError of this code."""
    try:
        yield
    except EtvkGuardError:
        raise
    except Exception as error:
        words = str(error) or type(error).__name__
        raise failure(code, f"{type(error).__name__}: {words}", url) from error


def failure(code: str, problem: str, url: str, advice: str | None = None) -> EtvkGuardError:
    """The error of this code, about this file."""
    from etvk_guard import contract  # read only where something is wrong

    known = contract.error(code)
    error = EtvkGuardError(known.code, known.name, problem, advice=advice or known.advice)
    error.file = url
    return error
