# SPDX-License-Identifier: Apache-2.0
"""What stock ET-VK makes of an argument that breaks the prepack contract.

Aborts are decided from the contract's table while a graph is loaded; the silent wrong values are
computed here from what the shaders read. Sources: `impl/Staging.cpp` (prepack_standard_like),
`impl/RmsNorm.cpp`, `impl/NativeLayerNorm.cpp` and the `rms_norm_*`, `native_layer_norm_*` shaders.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import torch

from etvk_guard import contract
from etvk_guard.reference import errors
from etvk_guard.reference.stock_limits import LIMITS

if TYPE_CHECKING:
    from etvk_guard.pte import Graph, Where

# The release whose behaviour `contract="stock"` is.
RELEASE: Final = "1.5"

# What memory holds that a kernel should have written and did not. Really it is whatever was there
# before; NaN makes sure that no comparison passes by luck.
POISON: Final = float("nan")


def check_op(graph: Graph, op_index: int, where: Where) -> None:
    """Raise StockAbortError if stock throws on an argument of this op while the method loads."""
    op = graph.ops[op_index]
    info = contract.op(op.name)
    if info is None or RELEASE not in info.releases:
        # VulkanBackend.cpp: "Missing operator". The lowering claims a few ops that no runtime has.
        message = f"stock aborts while loading: it has no op {op.name}"
        missing = any(op.name == known.name for known in contract.missing_ops())
        raise errors.stock_abort(message, where, "EG303" if missing else "EG301")
    for row in contract.rows(op.name):
        broken = _breach(graph, op.args, row)
        if broken is None:
            continue
        code = row.broken.get(broken)
        if code is None:
            continue
        effect = row.releases.get(RELEASE) if broken == "runtime" else contract.finding(code).stock
        if effect == "abort":
            message = f"stock aborts while loading: {op.name}, {row.name} is {_SAID[broken]}"
            raise errors.stock_abort(message, replace(where, argument=row.name), code)
    for limit in LIMITS:
        refusal = limit(graph, op)
        if refusal is not None:
            message = f"stock aborts while loading: {op.name}, {refusal.argument}: {refusal.reason}"
            raise errors.stock_abort(
                message, replace(where, argument=refusal.argument), refusal.code
            )
    constants = {row.arg for row in info.prepack} | set(info.either)
    for place, value_id in enumerate(op.args[:-1]):
        at = replace(where, argument=f"argument {place}")
        if place not in info.symbolic and _is_symbolic(graph, value_id):
            message = f"stock aborts while loading: {op.name}, argument {place} holds a size"
            raise errors.stock_abort(message, at, "EG206")
        if place not in constants and _is_tref(graph, value_id):
            message = f"stock aborts while loading: {op.name}, argument {place} is a constant"
            raise errors.stock_abort(message, at, "EG204")


def _is_tref(graph: Graph, value_id: int) -> bool:
    """Whether a value is a constant that nothing has copied to the GPU."""
    value = graph.values[value_id]
    if value.kind != "tensor" or value.value.constant_id < 0 or value_id in graph.input_ids:
        return False
    return all(op.args[-1] != value_id for op in graph.ops)


def _is_symbolic(graph: Graph, value_id: int) -> bool:
    """Whether a value is a list that holds a size which only running tells."""
    value = graph.values[value_id]
    return value.kind == "value_list" and any(
        graph.values[item].kind == "symint" for item in value.value
    )


_SAID: Final = {"runtime": "computed at run time, not a constant", "none": "missing"}


def _breach(
    graph: Graph, args: tuple[int, ...], row: contract.PrepackRow
) -> contract.Breaking | None:
    """How this argument breaks its row in a way that stock checks for, if it does."""
    if row.arg >= len(args):
        return None
    value = graph.values[args[row.arg]]
    if value.kind == "null":
        return None if row.none_ok else "none"
    if value.kind == "tensor" and value.value.constant_id >= 0:
        return None
    return "runtime"


def norm_operand(operand: torch.Tensor, width: int, *, buffer: bool) -> torch.Tensor:
    """The `width` numbers that a norm's shader reads of a prepacked weight or bias, for every row.

    In a buffer it reads elements 0 .. width - 1 of the contiguous tensor, and past the end whatever
    lies there: POISON. In a texture it reads the texels of the first row of the innermost two dims,
    and 0 past the end. Measured on lavapipe, float and half, with weights [T, D], [B, 1, D],
    [1, 1, D], [T, 1], [1] and a scalar, D being 8 and 7. There, past the end of a buffer, lie old
    numbers up to a multiple of 16 bytes, and then zeros.
    """
    if buffer:
        row = operand.reshape(-1)[:width]
    else:
        row = operand.reshape(-1, operand.shape[-1])[0, :width] if operand.dim() else operand[None]
    return torch.nn.functional.pad(row, (0, width - row.numel()), value=POISON if buffer else 0.0)


def reinterpreted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A buffer's memory read as elements of `dtype`, as a shader of another dtype reads it.

    Shape is kept; elements past the end of the memory are 0. A texture is converted by its sampler
    and needs no such thing.
    """
    if tensor.dtype == dtype:
        return tensor
    flat = tensor.contiguous().reshape(-1)
    odd = flat.numel() * flat.element_size() % torch.empty(0, dtype=dtype).element_size()
    words = torch.nn.functional.pad(flat, (0, 1)) if odd else flat
    read = words.view(dtype)[: tensor.numel()]
    return torch.nn.functional.pad(read, (0, tensor.numel() - read.numel())).reshape(tensor.shape)


def written_in(result: torch.Tensor, dims: tuple[int, ...], *, buffer: bool) -> torch.Tensor:
    """`result`, of the input's shape, as it lies in an output of other `dims`.

    A norm writes its input's shape only: in a buffer the first elements, in a texture (texels along
    the width) the same positions. The rest is POISON. Measured on lavapipe, float and half, with
    results larger in each dim; the rest held old numbers there, in half up to the largest.
    """
    if tuple(result.shape) == dims:
        return result
    out = torch.full(dims, POISON)
    if buffer:
        count = min(result.numel(), out.numel())
        out.reshape(-1)[:count] = result.reshape(-1)[:count]
        return out
    return _written_in_texture(result, out)


def _written_in_texture(result: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The texture case: rows at (y, z) = (row % H, row // H), H being the height of the input."""
    height = result.shape[-2] if result.dim() > 1 else 1
    rows = result.reshape(-1, result.shape[-1])
    planes = out.reshape(-1, *out.shape[-2:]) if out.dim() > 1 else out.reshape(1, 1, -1)
    width = min(rows.shape[-1], planes.shape[-1])
    for index in range(rows.shape[0]):
        y, z = index % height, index // height
        if z < planes.shape[0] and y < planes.shape[1]:
            planes[z, y, :width] = rows[index, :width]
    return planes.reshape(out.shape)
