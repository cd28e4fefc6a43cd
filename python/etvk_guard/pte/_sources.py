# SPDX-License-Identifier: Apache-2.0
"""What a program can be read from: a path, a URL, bytes, or an object that is read at random."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, runtime_checkable

from etvk_guard import _native
from etvk_guard.pte._errors import EtvkGuardError
from etvk_guard.pte._remote import RemoteFile, is_url, local_path

if TYPE_CHECKING:
    from array import array
    from mmap import mmap

    import numpy as np

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


if TYPE_CHECKING:
    _Buffer = bytes | bytearray | memoryview | mmap | array[Any] | np.ndarray[Any, Any]
    Source = str | os.PathLike[str] | os.PathLike[bytes] | _Buffer | BinaryIO | RandomAccess
else:
    Source = Any


_IO_ERROR = "EG001"


class SourceReader:
    """A source as the C++ core reads it, and what is to be said of it when reading fails."""

    def __init__(
        self,
        native: _native.Reader,
        path: bytes | None = None,
        reads: _Reads | None = None,
        input_path: bytes | None = None,
        remote: RemoteFile | None = None,
    ) -> None:
        """`path` names a source that is a file; `reads` are the calls of one that is an object.

        `input_path` leads to the file that is read, also where the source is not its path.
        `remote` is the source where it is a URL.
        """
        self.native = native
        self.path = path
        self.input_path = path if input_path is None else input_path
        self.remote = remote
        self._reads = reads

    @property
    def name(self) -> str | None:
        """The file's name, for messages."""
        if self.remote is not None:
            return self.remote.url
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
    """A reader of `src`. Raises EtvkGuardError for what cannot be opened, else TypeError."""
    if isinstance(src, str) and is_url(src):
        path = local_path(src)
        return _open_remote(RemoteFile(src)) if path is None else _open_path(path_bytes(path))
    if isinstance(src, RemoteFile):
        return _open_remote(src)
    if isinstance(src, str | os.PathLike):
        return _open_path(path_bytes(src))
    buffer = _as_buffer(src)
    if buffer is not None:
        return SourceReader(_native.Reader.memory(buffer))
    read, size = _random_access(src)
    reads = _Reads(read)
    native = _native.Reader.callback(size, reads)
    return SourceReader(native, reads=reads, input_path=_input_path(src))


def _open_remote(remote: RemoteFile) -> SourceReader:
    reads = _Reads(remote.read)
    return SourceReader(_native.Reader.callback(remote.size, reads), reads=reads, remote=remote)


def _as_buffer(src: Any) -> memoryview | None:
    try:
        return memoryview(src).cast("B")
    except TypeError:
        if isinstance(src, memoryview):
            raise TypeError("src must be contiguous") from None
        return None
    except ValueError as error:  # released, or a closed file in memory
        raise _unreadable(str(error)) from error


def _input_path(src: Any) -> bytes | None:
    """A path to the file that an object reads, if there is one."""
    known = getattr(src, "input_path", None)
    if isinstance(known, bytes):
        return known
    try:
        return b"/dev/fd/%d" % src.fileno()
    except (AttributeError, OSError, TypeError, ValueError):
        return None


def _unreadable(problem: str) -> EtvkGuardError:
    from etvk_guard import contract  # read only where something is wrong

    error = contract.error(_IO_ERROR)
    return EtvkGuardError(error.code, error.name, problem, advice=error.advice)


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
        size = int(src.size() if callable(src.size) else src.size)
        if not 0 <= size < 1 << 63:
            raise _unreadable(f"the source says that it has {size} bytes")
        return src.read, size
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

    try:
        with lock:
            file.seek(0, os.SEEK_END)
            size = file.tell()
    except (OSError, ValueError) as error:  # a pipe, or closed
        why = str(error).rstrip(".")
        raise _unreadable(f"the source cannot be read at random: {why}") from error
    return read, size
