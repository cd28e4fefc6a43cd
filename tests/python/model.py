# SPDX-License-Identifier: Apache-2.0
"""A row of models.py, op_models.py or call_models.py, and the names of ops in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn

Stock = Literal["right", "abort", "wrong"]
Inputs = tuple[Tensor, ...]


@dataclass(frozen=True)
class Model:
    """One row of the table.

    Attributes:
        make: makes the module, in eval mode.
        inputs: makes the inputs of `forward`; with `methods`, of every method.
        stock: what a stock delegate does with the stock-lowered file.
        codes: codes of the findings, one a faulty argument, in the file's order.
        ops: the ops of each delegate as stock lowers them.
        repaired: the ops of each delegate after repair; None where they are `ops`.
        options: compile options of the VulkanPartitioner.
        dynamic: `dynamic_shapes` of `torch.export.export`.
        methods: further methods of the program, by name ("forward" is `make`).
        cpu: how many ops guarded lowering leaves to the CPU.
        tolerance: relative to the largest value of eager's result.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[], Inputs]
    stock: Stock = "right"
    codes: tuple[str, ...] = ()
    ops: tuple[tuple[str, ...], ...] = ()
    repaired: tuple[tuple[str, ...], ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    dynamic: Any = None
    methods: Mapping[str, Callable[[], nn.Module]] = field(default_factory=dict)
    cpu: int = 0
    tolerance: float = 1e-5


PREPACK, ADD, MUL = "et_vk.prepack.default", "aten.add.Tensor", "aten.mul.Tensor"
SUB, SIN, SIGMOID = "aten.sub.Tensor", "aten.sin.default", "aten.sigmoid.default"
CAST, CLONE = "dim_order_ops._to_dim_order_copy.default", "aten.clone.default"
LINEAR = "aten.linear.default"
RMS, LAYER = "et_vk.rms_norm.default", "aten.native_layer_norm.default"
