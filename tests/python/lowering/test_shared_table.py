# SPDX-License-Identifier: Apache-2.0
"""The table of models that the whole project shares, lowered by stock's partitioner under guard."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import etvk_guard
import exporting
from etvk_guard import reference
from etvk_guard.lowering import Decision, guard
from models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_row(name: str, close: Any) -> None:
    model = MODELS[name]
    with guard() as report:
        data = exporting.lower_stock(model)
    assert report.programs == 1 + len(model.methods)
    assert etvk_guard.check(data).findings == ()
    assert report.count(Decision.CPU) == model.cpu
    for method, make in {"forward": model.make, **model.methods}.items():
        inputs = model.inputs()
        with torch.no_grad():
            expected = make().eval()(*inputs)
        actual = reference.run(data, inputs, method=method, contract="stock")
        wanted = list(expected) if isinstance(expected, (list, tuple)) else [expected]
        assert len(actual) == len(wanted)
        for got, value in zip(actual, wanted, strict=True):
            close(got, value, model.tolerance)
