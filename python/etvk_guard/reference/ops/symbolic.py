# SPDX-License-Identifier: Apache-2.0
"""Whole numbers computed from shapes and inputs (`impl/SymIntOps.cpp`); 32-bit in the delegate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from etvk_guard.reference.call import Call


def _wrapped(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _operands(call: Call) -> tuple[int, int]:
    return int(call.number(0)), int(call.number(1))


def add(call: Call) -> int:
    """a + b."""
    a, b = _operands(call)
    return _wrapped(a + b)


def sub(call: Call) -> int:
    """a - b."""
    a, b = _operands(call)
    return _wrapped(a - b)


def mul(call: Call) -> int:
    """a * b."""
    a, b = _operands(call)
    return _wrapped(a * b)


def floordiv(call: Call) -> int:
    """a // b, rounded down."""
    a, b = _operands(call)
    return _wrapped(a // b)


def size(call: Call) -> int:
    """The tensor's actual size in a dim."""
    return int(call.tensor(0).shape[int(call.number(1))])


def select(call: Call) -> int:
    """An element of a whole-number input: x.select(dim, index), whose other dims are one."""
    picked = call.tensor(0).select(int(call.number(1)), int(call.number(2)))
    return int(picked.reshape(-1)[0].item())


OPS: Final = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "floordiv": floordiv,
    "sym_size.int": size,
    "et_vk.select_as_symint.default": select,
}
