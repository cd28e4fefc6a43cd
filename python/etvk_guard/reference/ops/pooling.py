# SPDX-License-Identifier: Apache-2.0
"""Pooling (`impl/Pool.cpp`), which ATen computes; stock wants each list of two numbers in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from etvk_guard.reference.ops.generic import aten

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call, OpFunction, Result


def _pooling(name: str) -> OpFunction:
    compute = aten(name)

    def run(call: Call) -> Result:
        if call.stock and not call.args[2]:
            raise call.abort("stock aborts while loading: pooling without an explicit stride")
        return compute(call)

    return run


OPS: Final = {
    f"aten.{name}": _pooling(name)
    for name in ("avg_pool2d.default", "max_pool2d.default", "max_pool2d_with_indices.default")
}
