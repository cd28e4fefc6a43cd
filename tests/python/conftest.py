# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all test folders share."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def stock(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """The `.pte` that the stock partitioner makes of a row of `models.MODELS`, by its name.

    Files are kept in pytest's cache, under a name that changes with whatever they depend on.
    """
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir(f"stock-{_key()}")

    def get(name: str) -> Path:
        path = folder / f"{name}.pte"
        if not path.exists():
            from exporting import stock_file  # imports torch and executorch

            stock_file(name, folder)
        return path

    return get


def _key() -> str:
    """Names what the files depend on: the table, how it is lowered, torch and executorch."""
    names = ("model", "models", "norms", "call_models", "op_models", "op_modules", "exporting")
    parts = [(HERE / f"{name}.py").read_bytes() for name in names]
    parts += [importlib.metadata.version(name).encode() for name in ("torch", "executorch")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
