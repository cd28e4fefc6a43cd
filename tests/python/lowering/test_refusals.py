# SPDX-License-Identifier: Apache-2.0
"""What stays unfused for its sizes or dtype, or out. Only partitioned, not lowered."""

from __future__ import annotations

import gc
from typing import Any

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401  (registers ops)
import pytest
import torch
from executorch.exir import to_edge
from lowering_cases import Module, rand, rms
from torch.nn import functional

from etvk_guard.lowering import Decision, Entry, GuardedVulkanPartitioner, hook


def decide(forward: Any, *inputs: torch.Tensor, dynamic: Any = None) -> Entry:
    """The first decision about a norm."""
    program = torch.export.export(Module(forward), inputs, dynamic_shapes=dynamic)
    partitioner = GuardedVulkanPartitioner()
    partitioner.partition(to_edge(program).exported_program())
    return next(e for e in partitioner.report if e.rule in ("rms_norm", "layer_norm"))


def _dims(*places: int) -> Any:
    return (({place: torch.export.Dim(f"d{place}", min=2, max=8) for place in places},),)


CASES: dict[str, tuple[Any, torch.Tensor, Any, Decision, str]] = {
    "bfloat16": (
        lambda m, x: rms(x), rand(2, 3, 8).bfloat16(), None, Decision.UNFUSED,
        "ET-VK has no norm of bfloat16",
    ),
    "double": (
        lambda m, x: rms(x), rand(2, 3, 8).double(), None, Decision.UNFUSED,
        "ET-VK has no norm of float64",
    ),
    "dynamic_row": (
        lambda m, x: rms(x), rand(2, 3, 4), _dims(2), Decision.UNFUSED,
        "the normalized size is dynamic",
    ),
    "two_dynamic_sizes_to_flatten": (
        lambda m, x: functional.rms_norm(x, (4, 8)), rand(2, 3, 4, 8), _dims(0, 1),
        Decision.UNFUSED, "more than one dynamic size",
    ),
    "layer_norm_two_dynamic_sizes": (
        lambda m, x: functional.layer_norm(x, (4, 8)), rand(2, 3, 4, 8), _dims(0, 1),
        Decision.CPU, "more than one dynamic size",
    ),
    "two_dynamic_sizes": (
        lambda m, x: rms(x), rand(2, 3, 8), _dims(0, 1), Decision.UNIT, "nothing multiplies",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_decision(name: str) -> None:
    forward, x, dynamic, decision, reason = CASES[name]
    entry = decide(forward, x, dynamic=dynamic)
    assert entry.decision is decision
    assert reason in entry.reason


def test_an_op_that_no_runtime_registers_stays_out() -> None:
    """Stock delegates it, and the method aborts."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        choose = torch.ops.quantized_decomposed.choose_qparams.tensor
        scale, _ = choose(x, -128, 127, 1e-5, torch.int8)
        return rms(x) * 2 + scale.float()

    program = torch.export.export(Module(forward), (rand(2, 3, 8),))
    partitioner = GuardedVulkanPartitioner()
    tagged = partitioner.partition(to_edge(program).exported_program()).tagged_exported_program
    entry = next(e for e in partitioner.report if e.decision is Decision.CPU)
    name = "quantized_decomposed.choose_qparams.tensor"
    assert (entry.rule, entry.form) == ("audit", name)
    assert entry.reason == f"no runtime registers {name}"
    tags = {n.name: n.meta.get("delegation_tag") for n in tagged.graph.nodes}
    assert tags[entry.node] is None
    assert {tag for tag in tags.values() if tag}


def test_nothing_holds_these_abandoned_partitions() -> None:
    gc.collect()
    assert not hook.armed()
