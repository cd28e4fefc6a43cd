# SPDX-License-Identifier: Apache-2.0
"""The device tool held against the Python command: `make test-tools`.

    pytest tests/tools --tool x86_64=PROGRAM --tool "aarch64=PROGRAM" ...

A program for another machine is run with qemu's user emulation.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for builds.py

from builds import DATA, EMULATORS, Outcome, Tool  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tool", action="append", default=[], metavar="MACHINE=PROGRAM")


def pytest_configure(config: pytest.Config) -> None:
    tools = config.getoption("--tool")
    if not tools:
        raise pytest.UsageError("name at least one --tool: see make test-tools")
    for tool in tools:
        machine, _, path = tool.partition("=")
        if machine not in EMULATORS or not Path(path).is_file():
            raise pytest.UsageError(f"--tool {tool}: not MACHINE=PROGRAM of {sorted(EMULATORS)}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "tool" in metafunc.fixturenames:
        pairs = [item.partition("=")[::2] for item in metafunc.config.getoption("--tool")]
        tools = [Tool(machine, Path(path).resolve()) for machine, path in pairs]
        metafunc.parametrize("tool", tools, ids=[tool.machine for tool in tools], scope="session")


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """The Python command, inside this process."""
    from etvk_guard.cli import main

    def call(*args: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["etvk-guard", *map(str, args)])
        monkeypatch.setenv("COLUMNS", "10000")
        with pytest.raises(SystemExit) as exited:
            main()
        code = exited.value.code
        assert isinstance(code, int)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def same(tool: Tool, cli: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Run both, hold their exit codes and all that they print against each other."""

    def run(*args: object) -> Outcome:
        theirs = cli(*args)
        mine = tool(*args)
        renamed = mine.out.replace("`etvk-guard-pte repair", "`etvk-guard repair")
        assert (mine.code, renamed, mine.err) == (theirs.code, theirs.out, theirs.err), args
        return mine

    return run


@pytest.fixture
def copy(tmp_path: Path) -> Callable[..., Path]:
    """Copy a data file into the test's own folder."""

    def make(name: str, target: str | bytes = "in.pte") -> Path:
        path = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), os.fsencode(target))))
        shutil.copy(DATA / "1.5.1" / f"{name}.pte", path)
        return path

    return make
