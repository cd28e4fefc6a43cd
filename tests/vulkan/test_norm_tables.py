# SPDX-License-Identifier: Apache-2.0
"""The norms of the lowering tests, as stock lowers them, under the builder: unrepaired.

A program that `check` finds a norm's fault in must give eager's numbers. Any other must give what
stock gives, whatever that is: the builder changes nothing else.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lowered import eager, lower_case, made_once
from lowering_cases import Case
from norm_cases import NORM_CASES
from op_cases import LAYER_NORMS

from etvk_guard import pte, runtime
from etvk_guard.runtime._inputs import largest_error

CASES = {case.name: case for case in (*NORM_CASES, *LAYER_NORMS)}
UNLOWERED = {"eps_parameter", "eps_one_element"}  # stock raises
REFUSED = {"layer_norm_dims"}  # over more dims than the last: no op of the delegate does that
# What stock aborts on, or gets wrong.
FAULTY = """
    one_plus casts unsqueeze view expand product merged integers integer_parameter tied
    constant_td constant_b1d constant_t1 constant_1 constant_scalar up_rank up_batch up_rows number
    computed_td runtime_d runtime_11d runtime_left runtime_b1d runtime_t1 adaln gated norm_by_norm
    norm_by_input runtime_integers dynamic_scale half_gemma half_scale_float
    layer_norm_bare layer_norm_no_bias layer_norm_modulated layer_norm_runtime_weight
    layer_norm_runtime layer_norm_runtime_weight_only layer_norm_runtime_bias layer_norm_one_plus
    layer_norm_half layer_norm_dynamic
"""


def stock_program(case: Case, folder: Path) -> Path:
    """The `.pte` that the stock partitioner makes of a case, once in `folder`."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    path = folder / f"table-{case.name}.pte"
    return made_once(path, lambda: lower_case(case, VulkanPartitioner()))


def blamed(path: Path) -> set[str]:
    return {finding.code for finding in pte.check(path).findings}


@pytest.mark.parametrize("name", sorted(CASES.keys() - UNLOWERED - REFUSED))
def test_under_the_builder(name, folder):
    case = CASES[name]
    path = stock_program(case, folder)
    inputs = case.make()[1]
    results = runtime.load(str(path), "builder").forward(*inputs)
    codes = blamed(path)
    assert all(code.startswith("EG10") for code in codes), codes
    assert bool(codes) == (name in FAULTY.split())
    expected = eager(case) if codes else runtime.load(str(path), "off").forward(*inputs)
    assert [r.dtype for r in results] == [e.dtype for e in expected]
    assert max(map(largest_error, results, expected)) <= case.tolerance


@pytest.mark.parametrize("name", sorted(UNLOWERED))
def test_stock_lowers_no_such_eps(name, tmp_path):
    with pytest.raises(Exception, match="FusePatternsPass"):
        stock_program(CASES[name], tmp_path)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_cannot_be_run_is_an_error(name, folder):
    path = stock_program(CASES[name], folder)
    with pytest.raises(runtime.RuntimeFailedError, match=r"etvk-guard: aten\.native_layer_norm"):
        runtime.load(str(path), "builder").load_method("forward")
