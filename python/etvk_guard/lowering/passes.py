# SPDX-License-Identifier: Apache-2.0
"""Passes of stock's preprocessing, kept from what they take for granted and do not check."""

from __future__ import annotations

import copy
import types
from typing import Any

from executorch.backends.vulkan import utils
from executorch.backends.vulkan._passes import SqueezeUnsqueezeInputs, TagMemoryMetaPass
from executorch.backends.vulkan.op_registry import get_op_features
from executorch.backends.xnnpack._passes import FuseBatchNormPass
from executorch.exir.pass_base import ExportPass
from torch.fx import Node

from etvk_guard.lowering import _compat
from etvk_guard.lowering.graph import edge, is_op

__all__ = ["PASSES", "CarefulBatchNorm", "CarefulMemory", "CarefulSqueeze"]

_TRANSPOSED, _GROUPS = 6, 8


class CarefulBatchNorm(FuseBatchNormPass):  # type: ignore[misc]
    """Folds a batch norm into the convolution or linear op before it, where that is possible.

    Stock names the folded weight after the original one. Of a convolution that several norms
    follow, each for its own call, the last fold would overwrite the others: silently wrong. And a
    transposed convolution in groups cannot be folded the way stock does it.
    """

    @staticmethod
    def can_fuse(input_node: Node, bn: Node, program: Any, why: Any = None) -> bool:
        """Whether stock may fold `bn` into `input_node`."""
        operands = [node for node in input_node.args[1:3] if isinstance(node, Node)]
        if any(len(node.users) > 1 for node in operands):
            return False
        if is_op(input_node, edge.convolution.default):
            args = input_node.args
            if args[_TRANSPOSED] and args[_GROUPS] != 1:
                return False
        return bool(FuseBatchNormPass.can_fuse(input_node, bn, program, why))


class CarefulSqueeze(SqueezeUnsqueezeInputs):  # type: ignore[misc]
    """Puts views around `relu` and `gelu`, but not where they have keyword arguments.

    Stock hands those of `gelu(approximate="tanh")` to the views too, which take none: lowering
    fails.
    """

    def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
        """Run one op."""
        if kwargs:
            return ExportPass.call_operator(self, op, args, kwargs, meta)
        return super().call_operator(op, args, kwargs, meta)


def _features(target: Any) -> Any:
    """What stock's registry says of an op, except where its shader does not do what is said.

    The shader of an embedding fills texels along the width. Stock takes any other packing for
    equally good, and picks one where the table has more rows than a texture: silently wrong.
    """
    features = get_op_features(target)
    if target != edge.embedding.default or features.inputs_storage.vals != [utils.ANY_STORAGE]:
        return features
    careful = copy.copy(features)
    careful.inputs_storage = utils.TensorRepSetList(utils.CONTIGUOUS_ANY)
    careful.outputs_storage = utils.TensorRepSetList(utils.CONTIGUOUS_ANY)
    return careful


class CarefulMemory(TagMemoryMetaPass):  # type: ignore[misc]
    """Chooses storage and memory layout of each value, by what its ops really take."""


for _name, _function in vars(TagMemoryMetaPass).items():
    if (
        isinstance(_function, types.FunctionType)
        and "get_op_features" in _function.__code__.co_names
    ):
        setattr(CarefulMemory, _name, _compat.rebind(_function, {"get_op_features": _features}))


PASSES = {
    "FuseBatchNormPass": CarefulBatchNorm,
    "SqueezeUnsqueezeInputs": CarefulSqueeze,
    "TagMemoryMetaPass": CarefulMemory,
}
"""By the names that stock's preprocessing looks up."""
