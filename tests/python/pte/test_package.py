# SPDX-License-Identifier: Apache-2.0
"""What importing the package costs and brings."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import pytest

import etvk_guard
from etvk_guard import EtvkGuardError, Where


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout


HEAVY = ("torch", "executorch", "numpy", "typer", "rich", "click", "asyncio")


def test_import_brings_nothing_heavy() -> None:
    loaded = json.loads(run("import etvk_guard, json, sys; print(json.dumps(sorted(sys.modules)))"))
    assert "etvk_guard._native" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_import_is_quick() -> None:
    """Under 0.2 s of processor time, the best of five: the machine may be busy."""
    code = (
        "import time; start = time.process_time(); import etvk_guard;"
        "print(time.process_time() - start)"
    )
    assert min(float(run(code)) for _ in range(5)) < 0.2


def test_the_command_starts_without_torch() -> None:
    code = (
        "import sys; sys.argv[1:] = ['findings', '--json']\n"
        "from etvk_guard.cli import main\n"
        "import contextlib, io\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main()\n"
        "print([name for name in ('torch', 'executorch', 'numpy') if name in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_the_package_is_typed() -> None:
    files = resources.files("etvk_guard")
    assert files.joinpath("py.typed").is_file()
    assert files.joinpath("_native.pyi").is_file()


def test_exported_names_exist() -> None:
    lazy = {"lowering", "reference", "runtime", "GuardedVulkanPartitioner"}
    eager = set(etvk_guard.__all__) - lazy
    assert eager <= set(vars(etvk_guard))
    assert lazy <= set(etvk_guard.__all__)


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        etvk_guard.no_such_thing  # noqa: B018


def test_an_error_travels_between_processes() -> None:
    error = EtvkGuardError("EG005", "truncated", "it ends", Where("forward", 1), "Copy it.")
    error.file = "a.pte"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, copy.name, copy.where) == ("EG005", "truncated", Where("forward", 1))
    assert str(copy) == str(error)
    assert str(error) == (
        "EG005 truncated: a.pte: it ends (method 'forward', delegate 1). Copy it."
    )


def test_only_the_entry_point_is_exported() -> None:
    """Another copy of flatbuffers, or of this library, in the process cannot meet ours."""
    import etvk_guard._native as native

    out = subprocess.run(
        ["nm", "-D", "--defined-only", str(native.__file__)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = [line.split()[-1] for line in out.splitlines()]
    assert names == ["PyInit__native"]


def test_refusing_is_quick(tmp_path: Path) -> None:
    """A sparse file of 4 GB that is no program is refused at once."""
    path = tmp_path / "sparse.pte"
    with path.open("wb") as file:
        file.truncate(4 << 30)
    start = time.perf_counter()
    with pytest.raises(EtvkGuardError) as caught:
        etvk_guard.check(path)
    assert caught.value.code == "EG004"
    assert time.perf_counter() - start < 1
