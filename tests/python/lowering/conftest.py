# SPDX-License-Identifier: Apache-2.0
"""Lowering under guard, and reading what came out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower

import etvk_guard
from etvk_guard.lowering import GuardedVulkanPartitioner, LoweringReport

sys.path.insert(0, str(Path(__file__).parent))  # for the tables of cases

from lowering_cases import short

from patterns import patterns_made_once


@pytest.fixture(scope="session", autouse=True)
def _quick_patterns() -> Iterator[None]:
    with patterns_made_once():
        yield


@dataclass
class Lowered:
    """A lowered program, and the record of its lowering."""

    data: bytes
    report: LoweringReport

    @property
    def delegates(self) -> list[str]:
        """The ops of each delegate, in short names, separated by spaces."""
        method = etvk_guard.open_program(self.data).methods[0]
        return [" ".join(short(op.name) for op in d.graph.ops) for d in method.delegates if d.graph]

    @property
    def cpu(self) -> list[str]:
        """The operators outside of the delegates, without their overload."""
        method = etvk_guard.open_program(self.data).methods[0]
        return [name for name, _ in method.operators]


def lower_guarded(
    module: torch.nn.Module, inputs: Any, dynamic: Any = None, **kwargs: Any
) -> Lowered:
    """Lower one module by the usual route."""
    partitioner = GuardedVulkanPartitioner(**kwargs)
    program = torch.export.export(module.eval(), tuple(inputs), dynamic_shapes=dynamic)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    return Lowered(bytes(edge.to_executorch().buffer), partitioner.report)


@pytest.fixture(scope="session")
def lower() -> Any:
    """`lower_guarded`."""
    return lower_guarded


def assert_close(actual: torch.Tensor, expected: torch.Tensor, relative: float) -> None:
    """Equal shape and dtype, and an error of at most `relative` of the largest value."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    assert torch.isfinite(expected).all()
    error = (actual.double() - expected.double()).abs().max()
    assert float(error) <= relative * max(float(expected.double().abs().max()), 1e-3)


@pytest.fixture(scope="session")
def close() -> Any:
    """`assert_close`."""
    return assert_close
