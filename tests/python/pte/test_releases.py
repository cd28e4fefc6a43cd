# SPDX-License-Identifier: Apache-2.0
"""Files that executorch 1.3.1, 1.4.1 and 1.5.1 wrote, kept in tests/data/releases: read forever.

The models, and so eager's numbers, are those of `models.MODELS`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from etvk_guard import check, reference, repair
from models import MODELS

RELEASES = Path(__file__).resolve().parents[2] / "data/releases"
FILES = sorted(RELEASES.glob("*/*.pte"))
IDS = [f"{path.parent.name}-{path.stem}" for path in FILES]


def test_each_release_is_there() -> None:
    assert {path.parent.name for path in FILES} == {"1.3.1", "1.4.1", "1.5.1"}


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_found(path: Path) -> None:
    report = check(path)
    assert tuple(finding.code for finding in report.findings) == MODELS[path.stem].codes


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_repaired(path: Path) -> None:
    """The repaired file is clean, repairs to itself, and gives eager's numbers."""
    model = MODELS[path.stem]
    result = repair(path, None)
    assert result.changed == bool(model.codes)
    assert result.data is not None
    assert check(result.data).clean
    assert repair(result.data, None).data == result.data
    for method, make in {"forward": model.make, **model.methods}.items():
        with torch.no_grad():
            expected = make().eval()(*model.inputs()).double()
        (got,) = reference.run(result.data, model.inputs(), method)
        limit = model.tolerance * float(expected.abs().max())
        torch.testing.assert_close(got.double(), expected, rtol=0, atol=limit)
