# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all test folders share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def stock(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """The `.pte` that the stock partitioner makes of a row of `models.MODELS`, by its name.

    Files are kept in pytest's cache, under a name that changes with whatever they depend on.
    """
    import exporting  # imports torch

    folder = pytestconfig.cache.mkdir(f"stock-{exporting.cache_key()}")
    return lambda name: exporting.stock_file(name, folder)
