# SPDX-License-Identifier: Apache-2.0
"""From the command line's FILE... to files: folders are searched for `*.pte`, globs expanded.

URLs too: see `pte.find_programs`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator

from etvk_guard import pte

__all__ = ["NothingFoundError", "expand"]


class NothingFoundError(Exception):
    """A folder without programs, or a pattern that nothing matches."""


def expand(names: Iterable[str]) -> list[str | tuple[str, NothingFoundError]]:
    """The files that `names` stand for, in order and each once; or a name and why it has none."""
    found: dict[str, str | tuple[str, NothingFoundError]] = {}
    for name in names:
        for item in _expand(name):
            found.setdefault(item if isinstance(item, str) else item[0], item)
    return list(found.values())


def _expand(name: str) -> Iterator[str | tuple[str, NothingFoundError]]:
    if pte.is_url(name):
        yield from _expand_url(name)
    elif os.path.isdir(name):
        yield from _in_folder(name)
    elif os.path.lexists(name) or not glob.has_magic(name):
        yield name  # also where there is no such file: opening it says so
    elif matches := sorted(glob.glob(name, recursive=True)):
        for match in matches:
            yield from _in_folder(match) if os.path.isdir(match) else (match,)
    else:
        yield name, NothingFoundError("nothing matches this pattern")


def _expand_url(url: str) -> Iterator[str | tuple[str, NothingFoundError]]:
    try:
        yield from pte.find_programs(url)
    except pte.EtvkGuardError as error:
        yield url, NothingFoundError(error.problem)


def _in_folder(folder: str) -> Iterator[str | tuple[str, NothingFoundError]]:
    failures: list[OSError] = []
    empty = True
    for root, folders, files in os.walk(folder, onerror=failures.append):
        folders.sort()
        for file in sorted(files):
            if file.endswith(".pte"):
                empty = False
                yield os.path.join(root, file)
    for failure in failures:
        empty = False
        yield str(failure.filename), NothingFoundError(failure.strerror or str(failure))
    if empty:
        yield folder, NothingFoundError("the folder holds no .pte file")
