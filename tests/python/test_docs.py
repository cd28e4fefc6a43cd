# SPDX-License-Identifier: Apache-2.0
"""What README and docs tell a user to type: Python is run, and each `etvk-guard` command is too."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
import torch

from etvk_guard.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What is in place of a user's own stores.
STORES = {"s3://models/*/v2/*.pte": "memory://models/a/v2/*.pte", "s3://": "memory://"}
STORES["https://host/"] = "memory://models/"


class Norm(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, (64,))


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(page.read_text()) if language in languages]


def commands(page: Path) -> list[str]:
    """The lines of shell blocks, and code in the text, that call `etvk-guard` on files."""
    lines = "\n".join(blocks(page, "", "sh")).replace("\\\n", " ").splitlines()
    lines += re.findall(r"`(etvk-guard [^`\n]+)`", page.read_text())
    found = [line.partition(" #")[0].strip() for line in lines]
    return [line for line in dict.fromkeys(found) if re.match(r"etvk-guard \w+ \S", line)]


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]
COMMANDS = [(page, line) for page in PAGES for line in commands(page)]
# Placeholders, which stand for what the page explains.
SHOWN_ONLY = {"MODEL.pt2", "FILE", "IN"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stock: Callable[[str], Path]) -> Path:
    """A folder with a faulty `model.pte`, and a store with more."""
    shutil.copy(stock("one_plus"), tmp_path / "model.pte")
    store = fsspec.filesystem("memory")
    for name in ("a.pte", "a/v2/a.pte"):
        store.pipe(f"/models/{name}", (tmp_path / "model.pte").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*reference interpreter:RuntimeWarning")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python_runs(page: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of a page, one after the other, with what the text takes for granted."""
    from executorch.exir import to_edge_transform_and_lower

    x = torch.randn(2, 8, 64)  # what model.pte takes
    known = {
        "exported": torch.export.export(Norm(), (x,)),
        "to_edge_transform_and_lower": to_edge_transform_and_lower,
        "x": x,
    }
    for text in blocks(page, "python"):
        text = text.replace("runtime.enable_vulkan()", "")  # may be called where there is none
        text = text.replace('guard="builder"', 'guard="repair"')
        exec(compile(text, page.name, "exec"), known)


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=[line[:60] for _, line in COMMANDS])
def test_commands_are_understood(
    page: Path, line: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end with the code that the page promises, never with that of a wrong use."""
    if SHOWN_ONLY & set(shlex.split(line.replace("[", " [ "))):
        options = re.findall(r"--?\w[\w-]*", line)
        assert all(option in _help(line.split()[1]) for option in options), options
        return
    for name, instead in STORES.items():
        line = line.replace(name, instead)
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, 1)


def _help(command: str) -> Any:
    call = [sys.executable, "-m", "etvk_guard", command, "--help"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout
