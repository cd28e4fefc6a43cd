# SPDX-License-Identifier: Apache-2.0
"""Guarded programs on the delegate as it is, without the builder and without a repair.

Errors are relative to the largest value of eager's result; a row says what it may be: 1e-5 in
float32 and 2e-3 in half.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lowered import ROWS, key, lowered_file

from etvk_guard import runtime
from etvk_guard.runtime._inputs import largest_error


@pytest.fixture(scope="session")
def lowered_folder(pytestconfig: pytest.Config) -> Path:
    assert pytestconfig.cache is not None
    return pytestconfig.cache.mkdir(f"lowered-{key()}")


@pytest.mark.parametrize("name", ROWS)
def test_row(name: str, lowered_folder: Path) -> None:
    row = ROWS[name]
    program = runtime.load(lowered_file(name, lowered_folder), guard="off")
    for method in row.methods:
        results, expected = program.run(method, *row.inputs()), row.expected(method)
        assert [r.dtype for r in results] == [e.dtype for e in expected]
        assert [r.shape for r in results] == [e.shape for e in expected]
        errors = list(map(largest_error, results, expected))
        assert max(errors) <= row.tolerance, (method, errors)
