# SPDX-License-Identifier: Apache-2.0
"""Arguments as a program serializes them, made into those of a torch operator's schema.

Both formats hold an operator's arguments in the order of its schema, keyword-only ones included,
with numbers kept loosely: a float that is whole may be an Int, and dtype, layout, device and memory
format are Null (VkGraph) or numbers (ExecutionPlan).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from etvk_guard.reference.dtypes import MEMORY_FORMATS, SCALAR_TYPES

# Never from the file: everything runs on the CPU, strided and unpinned.
_PLACEMENT: Final = frozenset({"layout", "device", "pin_memory"})


def bind(
    schema: torch.FunctionSchema, values: Sequence[Any], *, loose_formats: bool
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments for `schema` from its arguments in order.

    `loose_formats`: dtype and memory format are not given (a VkGraph), so the defaults hold and the
    caller casts the result. Raises ValueError where the count or a type does not fit.
    """
    parameters = [a for a in schema.arguments if not a.is_out]
    if len(values) > len(parameters):
        counts = f"{len(values)} arguments, not up to {len(parameters)}"
        raise ValueError(f"{schema.name}: {counts}")
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter, value in zip(parameters, values, strict=False):
        if parameter.name in _PLACEMENT:
            continue
        if parameter.name in ("dtype", "memory_format"):
            if value is None or loose_formats:
                continue
            kwargs[parameter.name] = _format(parameter.name, value)
        elif parameter.kwarg_only:
            kwargs[parameter.name] = convert(value, parameter.type)
        else:
            args.append(convert(value, parameter.type))
    return args, kwargs


def _format(name: str, value: Any) -> Any:
    table: dict[int, Any] = dict(SCALAR_TYPES if name == "dtype" else MEMORY_FORMATS)
    if value not in table:
        raise ValueError(f"{name} {value!r} is not known")
    return table[value]


def convert(value: Any, kind: Any) -> Any:
    """`value` as the type `kind` of a schema's argument wants it; ValueError if it cannot."""
    name = kind.kind()
    if name == "OptionalType":
        return None if value is None else convert(value, kind.getElementType())
    if name == "ListType":
        return _convert_list(value, kind.getElementType())
    if name in _CHECKS:
        return _CHECKS[name](value)
    raise ValueError(f"arguments of type {name} are not supported")


def _convert_list(value: Any, element: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [convert(item, element) for item in value]
    if element.kind() in ("IntType", "SymIntType", "FloatType", "BoolType"):
        return [convert(value, element)]  # `int[2] stride=1` may be a single number
    raise ValueError(f"a list is wanted, not {type(value).__name__}")


def _number(value: Any) -> int | float | bool:
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, (int, float)):
        raise ValueError(f"a number is wanted, not {type(value).__name__}")
    return value


def _integer(value: Any) -> int:
    number = _number(value)
    if int(number) != number:
        raise ValueError(f"a whole number is wanted, not {number!r}")
    return int(number)


def _tensor(value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise ValueError(f"a tensor is wanted, not {type(value).__name__}")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a string is wanted, not {type(value).__name__}")
    return value


_CHECKS: Final = {
    "TensorType": _tensor,
    "IntType": _integer,
    "SymIntType": _integer,
    "FloatType": lambda value: float(_number(value)),
    "NumberType": _number,
    "BoolType": lambda value: bool(_number(value)),
    "StringType": _string,
}
