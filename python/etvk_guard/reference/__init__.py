# SPDX-License-Identifier: Apache-2.0
"""Runs a `.pte` on the CPU with torch: an oracle for Vulkan programs that needs no GPU.

>>> from etvk_guard import reference
>>> outputs = reference.run("model.pte", [torch.ones(1, 8)])        # doctest: +SKIP

The delegates' graphs are run op by op from the VkGraph itself, and the program around them from the
instructions of its ExecutionPlan. Values have the dtype that the program declares for them: half is
half between any two ops, and 64-bit integers are 32-bit inside a delegate.

Two contracts:

* "stock" does what the delegate of release 1.5 does with an argument that breaks the prepack
  contract. Where that aborts, `StockAbortError` is raised, with the code of the finding that
  `etvk_guard.check` has for it. Where it is silently wrong, the wrong value is computed; elements
  that no kernel writes are NaN.
* "ideal" computes what the graph means: a norm's multiplier broadcasts, a weight may be computed at
  run time or be missing.

Where stock's shaders differ from ATen with legal arguments (gelu is always the tanh form, pow of a
base that is not positive, rotary tables of unequal halves), "stock" follows the shaders too, and it
aborts at an op that no runtime of the release registers.

A half value that overflows is infinite. Drivers differ here: lavapipe's float16 arithmetic does the
same (measured), but where it converts float32 to half, as on writing a texture, it gives 65504.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from etvk_guard.pte import Source, open_program
from etvk_guard.reference import errors
from etvk_guard.reference.call import Contract
from etvk_guard.reference.errors import InterpreterError, StockAbortError
from etvk_guard.reference.plan import LoadedMethod

__all__ = [
    "CONTRACTS",
    "Data",
    "InterpreterError",
    "LoadedMethod",
    "StockAbortError",
    "load",
    "run",
]

CONTRACTS: Final = tuple(contract.value for contract in Contract)

# Constants that are not in the program file: by key (a Vulkan delegate's named data) or by the
# tensor's fully qualified name (the program's own external constants).
Data = Mapping[str, bytes]


def load(
    src: Source, method: str = "forward", contract: str = "stock", data: Data | None = None
) -> LoadedMethod:
    """Load one method. Its `run(inputs)` may be called again and again, and keeps its buffers.

    Args:
        src: the program: a path, bytes or a file-like object, as for `etvk_guard.open_program`.
        method: the name of an ExecutionPlan.
        contract: "stock" or "ideal".
        data: constants that are not in the file.

    Raises:
        StockAbortError: with "stock", where a stock delegate throws while the method loads.
        InterpreterError: there is no such method (EG404), or something is not supported (EG401,
            EG402).
        EtvkGuardError: the file is not a sound program.
        ValueError: there is no such contract.
    """
    rules = Contract(contract)
    program = open_program(src)
    names = [candidate.name for candidate in program.methods]
    if method not in names:
        message = f"there is no method {method!r}; there are {', '.join(names) or 'none'}"
        raise errors.error(errors.NO_METHOD, message)
    given: Data = {} if data is None else data
    fetch: Callable[[str], bytes | None] = given.get
    return LoadedMethod(program, names.index(method), rules, fetch)


def run(
    src: Source,
    inputs: Sequence[Any],
    method: str = "forward",
    contract: str = "stock",
    data: Data | None = None,
) -> list[torch.Tensor]:
    """Load one method and run it once; its outputs in order.

    Args:
        src: the program: a path, bytes or a file-like object.
        inputs: one for each input of the method, in order: tensors of its dtypes and shapes (dims
            that are dynamic may be smaller), numbers where it takes numbers.
        method: the name of an ExecutionPlan.
        contract: "stock" or "ideal"; see the module.
        data: constants that are not in the file.

    Raises:
        StockAbortError: with "stock", where a stock delegate throws.
        InterpreterError: as `load`, or the inputs do not fit (EG403), or an op fails (EG406).
        EtvkGuardError: the file is not a sound program.
    """
    return load(src, method, contract, data).run(inputs)
