# SPDX-License-Identifier: Apache-2.0
"""Inputs that are made up, and how far results are from what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from etvk_guard.runtime import RuntimeFailedError
from etvk_guard.runtime._inputs import largest_error, random_inputs, tolerance_for

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "expected", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),
        ([-1.0, 4.0], [1.0, 4.0], 0.5),
        ([1.0], [0.0], 1.0),  # nothing to be relative to
        ([1.0, 2.0], [1.0, 2.0, 3.0], INF),
        ([[1.0]], [1.0], INF),
        ([NAN, 1.0], [NAN, 1.0], 0.0),
        ([NAN, 1.0], [0.0, 1.0], INF),
        ([INF, 1.0], [INF, 2.0], 0.5),
        ([INF], [-INF], INF),
        ([], [], 0.0),
        (7, 7, 0.0),
    ],
)
def test_largest_error(value: Any, expected: Any, error: float) -> None:
    assert largest_error(np.array(value), np.array(expected)) == error


def test_tolerance_is_that_of_the_dtype() -> None:
    assert tolerance_for(np.zeros(1, np.float16)) == 2e-3
    assert tolerance_for(np.zeros(1, np.float32)) == 1e-5


def test_random_inputs(stock: Callable[[str], Path]) -> None:
    x, s = random_inputs(str(stock("scale")), seed=5)
    assert isinstance(x, np.ndarray)
    assert isinstance(s, np.ndarray)
    assert (x.shape, x.dtype) == ((2, 8, 64), np.float32)
    assert s.shape == (1, 1, 64)
    assert -1 <= x.min() < -0.9
    assert 0.9 < x.max() < 1
    again, _ = random_inputs(str(stock("scale")), seed=5)
    other, _ = random_inputs(str(stock("scale")), seed=6)
    assert np.array_equal(x, again)
    assert not np.array_equal(x, other)


def test_random_inputs_of_half(stock: Callable[[str], Path]) -> None:
    x, _ = random_inputs(str(stock("half_scale")))
    assert isinstance(x, np.ndarray)
    assert x.dtype == np.float16


def test_random_inputs_of_no_method(stock: Callable[[str], Path]) -> None:
    with pytest.raises(RuntimeFailedError, match=r"EG506.*there are forward"):
        random_inputs(str(stock("scale")), "backward")
