# SPDX-License-Identifier: Apache-2.0
"""Ops that copy: to another storage or layout, or to another dtype (that of the result)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call


def copy(call: Call) -> torch.Tensor:
    """The operand; the caller converts it to the result's dtype."""
    return call.tensor(0).clone()


def prepack(call: Call) -> torch.Tensor:
    """A constant, copied to the GPU once. A tensor that is none makes stock abort (PrepackNode)."""
    if call.stock and not call.graph.is_constant(call.ids[0]):
        raise call.abort("stock aborts while loading: et_vk.prepack of a value that is no constant")
    return call.tensor(0).clone()


def copy_into(call: Call) -> torch.Tensor:
    """aten.copy(self, src): `src` in the shape of `self`."""
    return call.tensor(1).expand_as(call.tensor(0)).clone()


OPS: Final = {
    "aten._to_copy.default": copy,
    "aten.alias_copy.default": copy,
    "aten.clone.default": copy,
    "aten.copy.default": copy_into,
    "dim_order_ops._clone_dim_order.default": copy,
    "dim_order_ops._to_dim_order_copy.default": copy,
    "et_vk.prepack.default": prepack,
}
