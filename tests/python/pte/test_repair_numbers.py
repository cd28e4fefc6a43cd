# SPDX-License-Identifier: Apache-2.0
"""The numbers: each model under stock rules, as exported and repaired, against eager torch.

Tolerances are relative to the largest value of eager's result: 1e-5 for float32, 2e-3 for half
(`Model.tolerance`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from etvk_guard import reference, repair
from etvk_guard.reference import StockAbortError
from models import MODELS, Model

Stock = Callable[[str], Path]


def eager(model: Model, method: str, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    make = {"forward": model.make, **model.methods}[method]
    with torch.no_grad():
        made = make().eval()(*inputs)
    assert isinstance(made, torch.Tensor)
    return made


def error(
    model: Model, source: Path | bytes, method: str, inputs: tuple[torch.Tensor, ...]
) -> float:
    """Largest difference to eager under stock rules, relative to eager's largest value.

    Infinite where an element was never written, which the interpreter shows as NaN.
    """
    expected = eager(model, method, inputs)
    (result,) = reference.run(source, inputs, method)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    difference = (result.double() - expected.double()).abs().nan_to_num(nan=torch.inf).max()
    return float(difference / expected.double().abs().max())


CASES = [(name, method) for name, model in MODELS.items() for method in ("forward", *model.methods)]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_as_exported(name: str, method: str, stock: Stock) -> None:
    """Stock aborts, or is silently wrong, or is right: as the table says."""
    model = MODELS[name]
    does = METHODS.get((name, method), model.stock)
    if does == "abort":
        with pytest.raises(StockAbortError):
            reference.run(stock(name), model.inputs(), method)
    else:
        off = error(model, stock(name), method, model.inputs())
        assert (off <= model.tolerance) == (does == "right")
        assert off > 100 * model.tolerance or does == "right"


# The other methods of a program with several.
METHODS = {("methods", "a_constant"): "wrong", ("methods", "right"): "right"}


@pytest.mark.parametrize(("name", "method"), CASES)
def test_repaired(name: str, method: str, stock: Stock) -> None:
    model = MODELS[name]
    data = repair(stock(name), None).data
    if model.codes and model.repaired is None and model.stock == "wrong":
        assert error(model, data, method, model.inputs()) > 100 * model.tolerance
    elif model.codes and model.repaired is None:
        with pytest.raises(StockAbortError):
            reference.run(data, model.inputs(), method)
    else:
        assert error(model, data, method, model.inputs()) <= model.tolerance


DYNAMIC = [
    name
    for name, model in MODELS.items()
    if model.dynamic and (model.repaired is not None or not model.codes)
]


@pytest.mark.parametrize("name", DYNAMIC)
@pytest.mark.parametrize("length", [1, 3, 32])
def test_repaired_with_another_length(name: str, length: int, stock: Stock) -> None:
    """Dims that are dynamic may be anything up to their bound."""
    model = MODELS[name]
    inputs = tuple(
        resized(x, sizes, length)
        for x, sizes in zip(model.inputs(), model.dynamic.values(), strict=True)
    )
    data = repair(stock(name), None).data
    assert error(model, data, "forward", inputs) <= model.tolerance


def resized(x: torch.Tensor, sizes: dict[int, Any] | None, length: int) -> torch.Tensor:
    """Values of the shape of x, with another length of the dims that are dynamic."""
    shape = [length if dim in (sizes or {}) else size for dim, size in enumerate(x.shape)]
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(count, dtype=x.dtype)).reshape(shape)
