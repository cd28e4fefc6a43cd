# SPDX-License-Identifier: Apache-2.0
"""What a program can be read from: a path, bytes, or an object that can be read at random."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, runtime_checkable

from etvk_guard import _native
from etvk_guard.pte._errors import EtvkGuardError

__all__ = ["RandomAccess", "Source", "SourceReader", "open_source", "path_bytes"]


@runtime_checkable
class RandomAccess(Protocol):
    """An object of a known size that gives the bytes at an offset.

    Calls may come from any thread.
    """

    @property
    def size(self) -> int:
        """Bytes in all."""

    def read(self, offset: int, size: int, /) -> bytes:
        """Exactly `size` bytes from `offset`."""


Source = (
    str
    | os.PathLike[str]
    | os.PathLike[bytes]
    | bytes
    | bytearray
    | memoryview
    | BinaryIO
    | RandomAccess
)


class SourceReader:
    """A source as the C++ core reads it, and what is to be said of it when reading fails."""

    def __init__(
        self, native: _native.Reader, path: bytes | None = None, reads: _Reads | None = None
    ) -> None:
        """`path` names a source that is a file; `reads` are the calls of one that is an object."""
        self.native = native
        self.path = path
        self._reads = reads

    @property
    def name(self) -> str | None:
        """The file's name, for messages."""
        return None if self.path is None else os.fsdecode(self.path)

    @contextmanager
    def named(self, file: str | None = None) -> Iterator[None]:
        """Errors raised inside name the file, and are chained to what the source itself raised.

        The file is the source's own unless `file` names another.
        """
        try:
            yield
        except EtvkGuardError as error:
            error.file = error.file or file or self.name
            cause = self._reads.take() if self._reads else None
            if cause is None:
                raise
            if not isinstance(cause, Exception):
                raise cause from None
            raise error from cause


class _Reads:
    """The calls into a Python object; keeps the first exception since it was last asked for."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._failure: BaseException | None = None

    def __call__(self, offset: int, size: int) -> bytes:
        try:
            got = self._read(offset, size)
            if len(got) != size:
                raise EOFError(f"the source gave {len(got)} of {size} bytes at {offset}")
            return bytes(got)
        except BaseException as failure:
            self._failure = self._failure or failure
            raise

    def take(self) -> BaseException | None:
        """The first exception, once."""
        failure, self._failure = self._failure, None
        return failure


def path_bytes(path: str | os.PathLike[Any]) -> bytes:
    """A path in the file system's encoding, names that are not UTF-8 included."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("embedded null byte in a path")
    return encoded


def open_source(src: Source) -> SourceReader:
    """A reader of `src`. Raises EtvkGuardError for a path that cannot be opened, else TypeError."""
    if isinstance(src, bytes | bytearray | memoryview):
        return SourceReader(_native.Reader.memory(src))
    if isinstance(src, str | os.PathLike):
        return _open_path(path_bytes(src))
    read, size = _random_access(src)
    reads = _Reads(read)
    return SourceReader(_native.Reader.callback(size, reads), reads=reads)


def _open_path(path: bytes) -> SourceReader:
    try:
        return SourceReader(_native.Reader.file(path), path)
    except EtvkGuardError as error:
        error.file = os.fsdecode(path)
        raise


def _random_access(src: Any) -> tuple[Callable[[int, int], bytes], int]:
    if hasattr(src, "read") and hasattr(src, "seek"):
        return _seeking(src)
    if hasattr(src, "read") and hasattr(src, "size"):
        size = src.size() if callable(src.size) else src.size
        return src.read, int(size)
    raise TypeError(
        "src must be a path, a bytes-like object, a binary file or an object with `size` and "
        f"`read(offset, size)`, not {type(src).__name__}"
    )


def _seeking(file: BinaryIO) -> tuple[Callable[[int, int], bytes], int]:
    lock = threading.Lock()

    def read(offset: int, size: int) -> bytes:
        with lock:
            file.seek(offset)
            parts = []
            while size > 0 and (part := file.read(size)):
                if not isinstance(part, bytes):
                    raise TypeError("src must be opened in binary mode")
                parts.append(part)
                size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    with lock:
        size = file.seek(0, os.SEEK_END)
    return read, size
