# SPDX-License-Identifier: Apache-2.0
"""Inputs for a method: made up from what the program says of them, and compared with results."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from etvk_guard.pte import PlanValue, open_program
from etvk_guard.runtime import _errors

__all__ = ["input_words", "largest_error", "random_inputs", "tolerance_for"]

# ScalarType of ExecuTorch.
NUMPY_DTYPES: Final[dict[int, Any]] = {
    0: np.uint8,
    1: np.int8,
    2: np.int16,
    3: np.int32,
    4: np.int64,
    5: np.float16,
    6: np.float32,
    7: np.float64,
    11: np.bool_,
}
HALF_TOLERANCE: Final = 2e-3
TOLERANCE: Final = 1e-5


def random_inputs(
    path: str, method: str = "forward", seed: int = 0
) -> list[np.ndarray[Any, Any] | int | float | bool]:
    """Inputs of a method's shapes and dtypes, the same for the same seed.

    Floats are uniform in [-1, 1); integers are 0 or 1, which every embedding has; numbers are 1.
    Dims that are dynamic have their upper bound.
    """
    rng = np.random.default_rng(seed)
    return [_make(value, rng) for value in _inputs(path, method)]


def input_words(path: str, method: str = "forward") -> list[str]:
    """What a method takes, in words: "float32 [1, 7, 64]", "a number"."""
    return [_words(value) for value in _inputs(path, method)]


def _inputs(path: str, method: str) -> list[PlanValue]:
    program = open_program(path)
    plan = next((candidate for candidate in program.methods if candidate.name == method), None)
    if plan is None:
        known = ", ".join(candidate.name for candidate in program.methods) or "none"
        message = f"there is no method {method!r}; there are {known}"
        raise _errors.error(_errors.NO_METHOD, message)
    return [plan.values[index] for index in plan.inputs]


def _words(value: PlanValue) -> str:
    if value.kind != "tensor":
        return f"a number ({value.kind})"
    dtype = NUMPY_DTYPES.get(value.value.dtype)
    name = "a tensor of" if dtype is None else np.dtype(dtype).name
    return f"{name} {list(value.value.sizes)}"


def _make(value: PlanValue, rng: np.random.Generator) -> np.ndarray[Any, Any] | int | float | bool:
    if value.kind == "tensor":
        dtype = NUMPY_DTYPES.get(value.value.dtype)
        if dtype is None:
            message = f"an input has the dtype {value.value.dtype}, which numpy does not have"
            raise _errors.error(_errors.BAD_INPUT, message)
        if np.issubdtype(dtype, np.floating):
            return np.asarray(rng.random(value.value.sizes) * 2 - 1, dtype=dtype)
        return np.asarray(rng.integers(0, 2, value.value.sizes), dtype=dtype)
    made = {"int": 1, "double": 1.0, "bool": True}.get(value.kind)
    if made is None:
        message = f"an input is of kind {value.kind}, which cannot be made up"
        raise _errors.error(_errors.BAD_INPUT, message)
    return made


def largest_error(value: Any, expected: Any) -> float:
    """Largest absolute difference, relative to the largest expected value; inf on any mismatch.

    Elements that are NaN or the same infinity in both count as equal.
    """
    a = np.asarray(value, dtype=np.float64)
    b = np.asarray(expected, dtype=np.float64)
    if a.shape != b.shape:
        return float("inf")
    with np.errstate(invalid="ignore"):
        difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    if not np.isfinite(difference).all():
        return float("inf")
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max(initial=0.0)) or 1.0
    return float(difference.max(initial=0.0)) / scale


def tolerance_for(value: Any) -> float:
    """What `largest_error` of an output of this dtype may be: 1e-5, and 2e-3 for half."""
    return HALF_TOLERANCE if np.asarray(value).dtype == np.float16 else TOLERANCE
