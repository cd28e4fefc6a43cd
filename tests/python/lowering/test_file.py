# SPDX-License-Identifier: Apache-2.0
"""Lowering a saved program."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from lowering_cases import HALF, Module, rand, rms, weight

import etvk_guard
from etvk_guard import reference
from etvk_guard.lowering import Decision, lower_file

X = rand(2, 3, 16)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    module = Module(lambda m, x, s: rms(x) * m.w * (1 + s), w=weight(16))
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(module, (X, rand(1, 1, 16))), path)
    return path


def _eager(path: Path) -> torch.Tensor:
    result: torch.Tensor = torch.export.load(path).module()(X, rand(1, 1, 16))
    return result


@pytest.mark.parametrize(("fp16", "tolerance"), [(False, 1e-5), (True, HALF)])
def test_lowers(saved: Path, tmp_path: Path, fp16: bool, tolerance: float) -> None:
    out = tmp_path / "model.pte"
    report = lower_file(saved, out, fp16=fp16)
    assert report.count(Decision.FOLDED) == 1
    assert etvk_guard.check(out).findings == ()
    actual = reference.run(out, (X, rand(1, 1, 16)))[0]
    assert (actual - _eager(saved)).abs().max() <= tolerance * _eager(saved).abs().max()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_program_for_the_guarded_runtime(saved: Path, tmp_path: Path) -> None:
    module = Module(lambda m, x, s: rms(x) * (1 + s))
    torch.export.save(torch.export.export(module, (X, rand(1, 1, 16))), saved)
    report = lower_file(saved, tmp_path / "out.pte", runtime="guarded")
    assert report.needs_guarded_runtime


def test_an_error_leaves_no_file(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - which one is the system's to say
        lower_file(saved, tmp_path / "no" / "such" / "folder.pte")
    with pytest.raises(Exception, match=r".+"):
        lower_file(tmp_path / "missing.pt2", tmp_path / "out.pte")
    assert {p.name for p in tmp_path.iterdir()} == {"model.pt2"}


@pytest.mark.parametrize(
    "link", [None, os.symlink, os.link], ids=["itself", "symlink", "hard link"]
)
def test_the_input_is_never_written(
    saved: Path, tmp_path: Path, link: Callable[[Path, Path], None] | None
) -> None:
    before, out = saved.read_bytes(), saved
    if link is not None:
        out = tmp_path / "out.pte"
        link(saved, out)
    with pytest.raises(ValueError, match="is the input"):
        lower_file(saved, out)
    assert saved.read_bytes() == before


def test_a_link_at_the_output_is_followed(saved: Path, tmp_path: Path) -> None:
    target, out = tmp_path / "target.pte", tmp_path / "out.pte"
    target.write_bytes(b"old")
    out.symlink_to(target)
    lower_file(saved, out)
    assert out.is_symlink()
    assert etvk_guard.check(target).clean


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x05\x06" + bytes(18)], ids=len)
def test_what_is_no_exported_program(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"not a program of `torch\.export\.save`"):
        lower_file(path, tmp_path / "out.pte")
    assert not (tmp_path / "out.pte").exists()
