# SPDX-License-Identifier: Apache-2.0
"""The C++ package's example on the real delegate: old files through the guarded loader."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import cxx_package
from cxx_package import Package
from models import MODELS

RELEASES = Path(__file__).resolve().parents[1] / "data/releases"
FILES = sorted(RELEASES.glob("*/*.pte"))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return cxx_package.build(tmp_path_factory.mktemp("package") / "cxx")


@pytest.mark.parametrize("path", FILES, ids=[f"{p.parent.name}-{p.stem}" for p in FILES])
def test_runs_right(package: Package, path: Path, tmp_path: Path) -> None:
    model = MODELS[path.stem]
    options = []
    for i, x in enumerate(model.inputs()):
        (tmp_path / f"in{i}").write_bytes(x.contiguous().numpy().tobytes())
        options += ["--input", str(tmp_path / f"in{i}")]
    backend = os.environ["ETVK_GUARD_BACKEND"]
    done = package.run(
        path, *options, "--output", str(tmp_path / "out"), ETVK_GUARD_BACKEND=backend
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("repaired: ") == len(model.codes)
    with torch.no_grad():
        expected = model.make().eval()(*model.inputs()).numpy()
    got = np.fromfile(tmp_path / "out0", expected.dtype).reshape(expected.shape).astype(np.float64)
    limit = model.tolerance * float(np.abs(expected).max())
    np.testing.assert_allclose(got, expected.astype(np.float64), rtol=0, atol=limit)
