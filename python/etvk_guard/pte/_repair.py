# SPDX-License-Identifier: Apache-2.0
"""Rewriting a program so that a stock delegate runs it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from etvk_guard import _native
from etvk_guard.pte._check import Finding, findings_of, report_of
from etvk_guard.pte._remote import failure, is_url, local_path, same_file, write_remote
from etvk_guard.pte._sources import Source, SourceReader, open_source, path_bytes

__all__ = ["Extent", "Overlay", "RepairResult", "repair"]


@dataclass(frozen=True)
class Extent:
    """A run of an overlay's bytes: [start, start + length).

    `source` is the offset of the run in the original, or None where the bytes are new.
    """

    start: int
    length: int
    source: int | None


class Overlay:
    """A repaired program: the original's bytes where they are, and what was changed.

    Has `size` and `read`, so that it can be given to `check`, `open_program` and `repair` itself.
    Keeps the original open.
    """

    def __init__(self, native: _native.Repair, reader: SourceReader) -> None:
        """Hold a native repair of the program in `reader`."""
        self._native = native
        self._reader = reader

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self._native.size

    def read(self, offset: int, size: int, /) -> bytes:
        """`size` bytes from `offset`. Raises IndexError where they are not in the overlay."""
        with self._reader.named():
            return self._native.read(offset, size)

    @property
    def input_path(self) -> bytes | None:
        """A path to the file that the original's bytes are read from, if there is one."""
        return self._reader.input_path

    @property
    def extents(self) -> Sequence[Extent]:
        """The runs of bytes in order; together they are the whole overlay."""
        return tuple(
            Extent(start, length, source if original else None)
            for start, length, original, source in self._native.extents
        )


@dataclass(frozen=True)
class RepairResult:
    """What `repair` did.

    Attributes:
        changed: False if the program was right already; the output is then the input's bytes.
        repaired: the sites that were rewritten.
        remaining: the findings that stay, each with the reason.
        added_activation_bytes: upper bound of the GPU memory that the rewrite adds.
        path: the file that was written, or None.
        overlay: the repaired program.
    """

    changed: bool
    repaired: tuple[Finding, ...]
    remaining: tuple[Finding, ...]
    added_activation_bytes: int
    path: str | None
    overlay: Overlay = field(repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """Whether no finding remains."""
        return not self.remaining

    @property
    def data(self) -> bytes:
        """The repaired program's bytes, read out anew at each call."""
        return self.overlay.read(0, self.overlay.size)

    def to_json(self) -> dict[str, Any]:
        """The result as `etvk-guard repair --json` prints it, without the input's name."""
        return {
            "output": self.path,
            "changed": self.changed,
            "repaired": [finding.to_json() for finding in self.repaired],
            "remaining": [finding.to_json() for finding in self.remaining],
            "added_activation_bytes": self.added_activation_bytes,
        }


def repair(src: Source, dst: str | os.PathLike[Any] | None = None) -> RepairResult:
    """Rewrite each fixable site of a `.pte`, so that a stock delegate runs it.

    The input is never touched; all bytes that need no change come through as they are. The output
    is written beside `dst`, synced and renamed into place, also if nothing had to be changed; on
    failure no file is left behind. What cannot be repaired is left as it is: see `remaining`.

    Args:
        src: what `check` takes.
        dst: the file to write, also a URL that fsspec can write to, or None: then `data` or
            `overlay` of the result is the program.

    Raises:
        EtvkGuardError: `src` cannot be read, is not a valid program, or has to stay as it is
            (shared data, fields from a newer schema); or `dst` cannot be written, or is `src`.
    """
    reader = open_source(src)
    with reader.named():
        native = _native.repair(_native.Program(reader.native))
    if dst is not None:
        _write(native, reader, dst)
    return RepairResult(
        changed=native.changed,
        repaired=findings_of(native.repaired),
        remaining=findings_of(native.remaining),
        added_activation_bytes=native.added_activation_bytes,
        path=None if dst is None else os.fsdecode(dst),
        overlay=Overlay(native, reader),
    )


def _write(native: _native.Repair, reader: SourceReader, dst: str | os.PathLike[Any]) -> None:
    remote = reader.remote
    if remote is not None:  # the last bytes of the input that are copied
        ends = [source + length for _, length, original, source in native.extents if original]
        remote.expect_unchanged_at(ends[-1] if ends else 0)
    path: str | os.PathLike[Any] | None = dst
    if isinstance(dst, str) and is_url(dst):
        path = local_path(dst)
    if path is not None:
        with reader.named(os.fsdecode(dst)):
            native.write(path_bytes(path), reader.input_path)
        return
    url = os.fsdecode(dst)
    if remote is not None and same_file(remote.url, url):
        raise failure("EG019", f"'{url}' is the input", url)
    with reader.named(url):
        write_remote(native.read, native.size, url)
        report_of(written := open_source(url), _native.Program(written.native))
