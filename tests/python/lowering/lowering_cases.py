# SPDX-License-Identifier: Apache-2.0
"""What a case of guarded lowering is, and the list of all of them."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

FLOAT = 1e-5
HALF = 2e-3

Forward = Callable[..., Any]


class Module(nn.Module):
    """A forward function with parameters and submodules."""

    def __init__(self, forward: Forward, **parts: Any) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(self, *inputs)


@dataclass
class Case:
    """One model, and what its guarded lowering must be.

    Attributes:
        name: for the test's id.
        make: makes the module and its inputs; seeded, so that it always makes the same.
        delegates: the ops of each delegate's VkGraph, in order, without "aten.", "et_vk.",
            ".default" and ".Tensor".
        decisions: (rule, decision) of each entry of the report, numbers excepted.
        cpu: the ops that stay outside.
        tolerance: relative error to eager.
        dynamic: `dynamic_shapes` of `torch.export.export`.
        reason: what the report's first reason must contain.
    """

    name: str
    make: Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]
    delegates: Sequence[str]
    decisions: Sequence[tuple[str, str]]
    cpu: Sequence[str] = ()
    tolerance: float = FLOAT
    dynamic: Any = None
    reason: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def rand(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Normal values, the same for the same shape and seed."""
    generator = torch.Generator().manual_seed(1000 * seed + sum(shape) + len(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def weight(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> nn.Parameter:
    """A parameter."""
    return nn.Parameter(rand(*shape, dtype=dtype, seed=seed), requires_grad=False)


def drawn(module: nn.Module) -> nn.Module:
    """A module with the same numbers in every process."""
    for seed, tensor in enumerate(module.parameters()):
        tensor.data = rand(*tensor.shape, seed=seed)
    return module


def rms(x: Tensor, eps: Any = 1e-6) -> Tensor:
    """The norm as most models write it."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def case(
    name: str,
    forward: Forward,
    inputs: Sequence[Tensor],
    delegates: str | Sequence[str],
    decisions: str | Sequence[tuple[str, str]],
    parts: dict[str, Any] | None = None,
    **rest: Any,
) -> Case:
    """A case from a forward function; a decision without a rule is one of a norm."""
    listed = [delegates] if isinstance(delegates, str) else list(delegates)
    decided = [("rms_norm", decisions)] if isinstance(decisions, str) else list(decisions)
    module = Module(forward, **(parts or {}))
    return Case(name, lambda: (module, tuple(inputs)), listed, decided, **rest)


def short(name: str) -> str:
    """An op's name without what says little."""
    for prefix in ("aten.", "et_vk."):
        name = name.removeprefix(prefix)
    if name.endswith("_copy.Tensor"):
        return name
    return name.removesuffix(".default").removesuffix(".Tensor")


def of_release(case: Case) -> Case:
    """A case as the installed release lowers it: releases.json has what differs from 1.5.1.

    Rows of that file are `delegates`, `cpu`, `decisions` and `reason`, by release and by case.
    """
    table = json.loads((Path(__file__).parent / "releases.json").read_text())
    row = table.get(importlib.metadata.version("executorch"), {}).get(case.name, {})
    if "decisions" in row:
        row["decisions"] = [tuple(decision) for decision in row["decisions"]]
    return replace(case, **row)
