# SPDX-License-Identifier: Apache-2.0
"""Each case of the tables: what was decided, what came out, and eager's numbers."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from fusion_cases import FUSION_CASES
from limit_cases import LIMIT_CASES
from lowering_cases import Case, of_release
from norm_cases import NORM_CASES
from op_cases import OP_CASES

import etvk_guard
from etvk_guard import reference

TABLES = (NORM_CASES, OP_CASES, FUSION_CASES, LIMIT_CASES)
CASES = {case.name: case for table in TABLES for case in table}


def _outputs(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def test_names_are_unique() -> None:
    assert len(CASES) == sum(map(len, TABLES))


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, lower: Any, close: Any) -> None:
    case: Case = of_release(CASES[name])
    module, inputs = case.make()
    with torch.no_grad():
        expected = _outputs(copy.deepcopy(module).eval()(*inputs))
    lowered = lower(module, inputs, case.dynamic)

    assert lowered.delegates == list(case.delegates)
    assert lowered.cpu == list(case.cpu)
    entries = [e for e in lowered.report if e.rule != "constant_scalar"]
    assert [(e.rule, e.decision.value) for e in entries] == list(case.decisions)
    if case.reason.startswith("form:"):
        assert case.reason.removeprefix("form:") in entries[0].form
    elif case.reason:
        assert case.reason in entries[0].reason
    assert etvk_guard.check(lowered.data).findings == ()

    actual = reference.run(lowered.data, inputs, contract="stock")
    assert len(actual) == len(expected)
    for got, wanted in zip(actual, expected, strict=True):
        close(got, wanted, case.tolerance)
