# SPDX-License-Identifier: Apache-2.0
"""run, doctor, lower and bench: what can be seen of them without a Vulkan delegate."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etvk_guard import check

Cli = Callable[..., Any]
Stock = Callable[[str], Path]


@pytest.fixture(autouse=True)
def _no_delegate(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ETVK_GUARD_BACKEND", "ETVK_GUARD_BUILDER", "ETVK_GUARD_KERNELS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("guard", ["repair", "builder"])
def test_run_falls_back_to_the_reference_and_says_so(cli: Cli, stock: Stock, guard: str) -> None:
    outcome = cli("run", stock("scale"), "--random", "--guard", guard, "--compare", "reference")
    assert outcome.code == 0
    assert "on reference" in outcome.out
    assert "right" in outcome.out
    assert "no Vulkan delegate" in outcome.err


def test_run_says_what_is_wrong(cli: Cli, stock: Stock) -> None:
    """A constant of another shape: stock's numbers are wrong, and the exit code says so."""
    command = ("run", stock("constant_rows"), "--random", "--compare", "reference")
    outcome = cli(*command, "--guard", "off")
    assert outcome.code == 1
    assert "WRONG" in outcome.out
    assert cli(*command, "--guard", "repair").code == 0


def test_run_reports_stocks_abort(cli: Cli, stock: Stock) -> None:
    outcome = cli("run", stock("one_plus"), "--random", "--guard", "off")
    assert outcome.code == 2
    assert "EG101" in outcome.err


def test_run_with_inputs_from_files(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 2 * 8 * 64, dtype=np.float32).reshape(2, 8, 64)
    s = np.full((1, 1, 64), 3, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "s.npy", s)
    files = ["--input", tmp_path / "x.npy", "--input", tmp_path / "s.npy"]
    outcome = cli("run", stock("runtime_11d"), *files, "--json", "--time", 3)
    assert outcome.code == 0
    made = outcome.json
    (output,) = made["outputs"]
    expected = 3 * x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6)
    assert output["shape"] == [2, 8, 64]
    assert output["dtype"] == "float32"
    assert output["first"] == pytest.approx(expected.ravel()[:4].tolist(), rel=1e-5)
    assert len(made["seconds"]) == 3
    assert (made["runs_on"], made["method"]) == ("reference", "forward")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--input", "missing.npy"],
        ["--random", "--method", "no_such_method"],
        ["--random", "--input", "x.npy"],
        [],
    ],
    ids=["missing file", "no method", "both", "no inputs"],
)
def test_run_errors(cli: Cli, stock: Stock, arguments: list[str]) -> None:
    outcome = cli("run", stock("leaf"), *arguments)
    assert outcome.code == 2
    assert outcome.err.count("error: ") == 1
    assert outcome.out == ""


def test_doctor(cli: Cli) -> None:
    outcome = cli("doctor", "--json")
    made = outcome.json
    assert outcome.code == 1  # the pip executorch has no delegate
    assert made["delegate"]["available"] is False
    assert any("ETVK_GUARD_BACKEND" in step for step in made["next"])
    assert made["versions"]["etvk-guard"]
    text = cli("doctor")
    assert text.code == 1
    assert "next: " in text.out
    for step in made["next"]:
        assert step in text.out


def test_doctor_names_a_library_that_cannot_be_loaded(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ETVK_GUARD_BACKEND", str(tmp_path / "none.so"))
    outcome = cli("doctor")
    assert outcome.code == 1
    assert "EG503" in outcome.out


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    from models import MODELS

    model = MODELS["scale"]
    path = tmp_path_factory.mktemp("exported") / "scale.pt2"
    torch.export.save(torch.export.export(model.make().eval(), model.inputs()), path)
    return path


def test_lower(cli: Cli, exported: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pte"
    outcome = cli("lower", exported, "-o", out, "--report", "json")
    assert outcome.code == 0
    assert check(out).clean
    assert json.loads(outcome.out)["entries"]
    assert os.listdir(tmp_path) == ["out.pte"]


def test_lower_for_the_guarded_runtime(cli: Cli, exported: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.pte"
    outcome = cli("lower", exported, "-o", out, "--runtime", "guarded", "--report", "table")
    assert outcome.code == 0
    assert {finding.code for finding in check(out).findings} == {"EG302"}
    assert "etvk-guard lowering" in outcome.out


def test_lower_errors(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.pt2").write_text("no exported program")
    for name in ("bad.pt2", "missing.pt2"):
        outcome = cli("lower", tmp_path / name, "-o", tmp_path / "out.pte")
        assert outcome.code == 2
        assert name in outcome.err
    assert os.listdir(tmp_path) == ["bad.pt2"]


def fake_harness(folder: Path, code: int) -> Path:
    path = folder / "kernels"
    path.write_text(f'#!/bin/sh\nprintf "%s " "$@" > "{folder}/seen"\nexit {code}\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["--devices"], "--list "),
        (["--devices", "--json"], "--list --json "),
        ([], "--bench --device 0 "),
        (
            ["--device", "llvmpipe", "--shape", "1x4096", "--shape", "2x8", "--quick", "--json"],
            "--bench --device llvmpipe --shape 1x4096 --shape 2x8 --quick --json ",
        ),
    ],
)
def test_bench_calls_the_harness(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], passed: str
) -> None:
    for code in (0, 1):
        monkeypatch.setenv("ETVK_GUARD_KERNELS", str(fake_harness(tmp_path, code)))
        assert cli("bench", *arguments).code == code
        assert (tmp_path / "seen").read_text() == passed


def test_bench_without_a_harness(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = cli("bench", "--devices")
    assert outcome.code == 2
    assert "ETVK_GUARD_HARNESS=ON" in outcome.err
    monkeypatch.setenv("ETVK_GUARD_KERNELS", str(tmp_path / "none"))
    assert cli("bench", "--devices").code == 2


def test_run_asks_for_inputs(cli: Cli, stock: Stock) -> None:
    outcome = cli("run", stock("scale"))
    assert outcome.code == 2
    for shape in ("float32 [2, 8, 64]", "--input FILE.npy", "--random"):
        assert shape in " ".join(outcome.err.split())


def test_run_says_which_input_is_none(cli: Cli, stock: Stock, tmp_path: Path) -> None:
    text = tmp_path / "text.npy"
    text.write_text("import os")
    for path, words in ((text, "it is no .npy file"), (tmp_path / "none.npy", "No such file")):
        outcome = cli("run", stock("scale"), "--input", path)
        assert outcome.code == 2
        message = " ".join(outcome.err.split())
        assert words in message
        assert "pickle" not in message
        assert path.name in message
