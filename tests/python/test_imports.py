# SPDX-License-Identifier: Apache-2.0
"""Which room of the project may know which: the arrows of its layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "etvk_guard"
CORE = ROOT / "cpp"

_ROOMS_OF_CLI = {"contract", "lowering", "pte", "reference", "runtime"}
_POSIX = ("dirent.h", "fcntl.h", "glob.h", "unistd.h")
# Room: the rooms, and the packages beside the standard library, that it may import.
PYTHON = {
    "__init__": {"_version", "lowering", "pte", "reference", "runtime"},
    "__main__": {"cli"},
    "_version": set(),
    "cli": _ROOMS_OF_CLI | {"numpy", "rich", "torch", "typer"},
    "contract": set(),
    "demo": {"reference", "executorch", "rich", "torch"},
    "lowering": {"contract", "executorch", "rich", "torch"},
    "pte": {"_native", "contract", "fsspec", "numpy"},
    "reference": {"contract", "pte", "torch"},
    "runtime": {"pte", "reference", "numpy", "torch"},
}  # fmt: skip
# Folder of cpp: what its #include lines may name, beside its own files, std and flatbuffers.
CPP = {
    "pte": r"etvk_guard/|program_generated|graph_generated|contract|schema",
    "loader": r"etvk_guard/|executorch/|checked\.h|wrapped\.h",
    "vulkan/kernels": r"norm_",
    "tools": r"etvk_guard/|printable\.h|error\.h|graph\.h|program\.h",
    "jni": r"etvk_guard/|jni\.h|utf8\.h",
}


def _rooms(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "etvk_guard":
            names = [f"etvk_guard.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = [str(node.module)]
        for name in names:
            first, _, rest = name.partition(".")
            yield rest.partition(".")[0] if first == "etvk_guard" and rest else first


def _known(name: str) -> bool:
    return name in set().union(*PYTHON.values()) | PYTHON.keys()


@pytest.mark.parametrize("room", sorted(PYTHON))
def test_python_rooms(room: str) -> None:
    files = list((PACKAGE / room).rglob("*.py")) or [PACKAGE / f"{room}.py"]
    found = {name for path in files for name in _rooms(path) if _known(name)} - {room, "etvk_guard"}
    assert found <= PYTHON[room]


def test_every_room_has_a_row() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    assert {room for room in rooms if not room.startswith("__pycache__")} == PYTHON.keys()


@pytest.mark.parametrize("folder", sorted(CPP))
def test_cpp_folders(folder: str) -> None:
    files = [path for path in (CORE / folder).rglob("*") if path.suffix in (".h", ".cpp")]
    own = {path.name for path in files}
    assert own
    for path in files:
        for name in re.findall(r'#include [<"]([^>"]+)[>"]', path.read_text()):
            standard = "/" not in name and not name.endswith(".h")
            posix = name in _POSIX or name.startswith(("sys/", "linux/"))
            ours = Path(name).name in own or re.match(CPP[folder], name)
            assert standard or posix or ours or name.startswith("flatbuffers/"), f"{path}: {name}"
