# SPDX-License-Identifier: Apache-2.0
"""Loading a program under a guard, and running it with torch or numpy values."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from etvk_guard.pte import open_program, repair
from etvk_guard.runtime import _errors
from etvk_guard.runtime._delegate import current_builder, enable_vulkan, portable_lib

if TYPE_CHECKING:
    import torch

    Tensor = torch.Tensor | np.ndarray[Any, Any]

__all__ = ["Guard", "LoadedProgram", "load"]

Guard = Literal["builder", "repair", "off"]
GUARDS: Final = ("builder", "repair", "off")

# Runs one method: takes torch tensors and numbers, gives torch tensors.
RunMethod = Callable[[Sequence[Any]], Sequence[Any]]

# What pybind11 makes of a C++ exception, such as those that the delegate's op builders throw.
_FROM_CPP: Final = (RuntimeError, IndexError, OverflowError, MemoryError)


class LoadedProgram:
    """A program in the runtime, or in the reference interpreter where there is no delegate.

    Methods are loaded when they are first run. A program may be used by one thread at a time;
    several programs may run in several threads.

    Attributes:
        guard: how it is guarded: "builder", "repair" or "off".
        runs_on: "vulkan" or "reference".
        methods: the names of its methods, in the file's order.
    """

    def __init__(
        self,
        guard: Guard,
        runs_on: Literal["vulkan", "reference"],
        methods: tuple[str, ...],
        load_method: Callable[[str], RunMethod],
    ) -> None:
        """Hold what `load` found."""
        self.guard = guard
        self.runs_on = runs_on
        self.methods = methods
        self._load_method = load_method
        self._loaded: dict[str, RunMethod] = {}

    def forward(self, *inputs: Tensor | float) -> list[Any]:
        """Run the method "forward"; see `run`."""
        return self.run("forward", *inputs)

    def run(self, method: str, *inputs: Tensor | float) -> list[Any]:
        """Run a method.

        Args:
            method: one of `methods`.
            inputs: tensors of torch or numpy in the method's shapes and dtypes, and numbers where
                it takes numbers.

        Returns:
            The outputs in order: numpy arrays where every tensor given was one, else torch's.

        Raises:
            RuntimeFailedError: there is no such method (EG506), or the delegate cannot load or run
                it (EG507): the message has the delegate's own words.
            EtvkGuardError: as the reference interpreter, where the program runs there.
        """
        run_method = self.load_method(method)
        values, all_numpy = _to_torch(inputs)
        try:
            outputs = run_method(values)
        except _FROM_CPP as problem:
            raise _errors.error(_errors.FAILED, f"{method} failed: {problem}") from problem
        return [_to_numpy(value) if all_numpy else value for value in outputs]

    def load_method(self, method: str) -> RunMethod:
        """Load a method now; what runs it. Raises as `run`."""
        if method not in self._loaded:
            if method not in self.methods:
                known = ", ".join(self.methods) or "none"
                message = f"there is no method {method!r}; there are {known}"
                raise _errors.error(_errors.NO_METHOD, message)
            try:
                self._loaded[method] = self._load_method(method)
            except _FROM_CPP as problem:
                message = f"{method} cannot be loaded: {problem}"
                raise _errors.error(_errors.FAILED, message) from problem
        return self._loaded[method]


def load(
    path: str | os.PathLike[str] | bytes,
    guard: Guard | None = None,
    *,
    data_path: str | os.PathLike[str] | None = None,
) -> LoadedProgram:
    """Load a `.pte`, so that norm weights of any kind run.

    Calls `enable_vulkan()` first. Where there is no delegate, the program runs in the reference
    interpreter, and a RuntimeWarning says so.

    Args:
        path: the program's file, or its bytes.
        guard: "builder": norms are built by the patched op builder. "repair": the program is
            repaired in memory and built by the stock delegate. "off": stock builds it as it is.
            None: "builder" where that is in effect, else "repair".
        data_path: a `.ptd` file with data that the program keeps outside.

    Raises:
        RuntimeFailedError: there is no executorch (EG501), or no builder (EG504) where the guard
            asks for it.
        EtvkGuardError: the file is no sound program, or cannot be repaired.
        ValueError: there is no such guard.
    """
    if guard is not None and guard not in GUARDS:
        raise ValueError(f"guard must be one of {', '.join(GUARDS)}, not {guard!r}")
    status = enable_vulkan()
    chosen: Guard = guard or ("builder" if status.guarded else "repair")
    if not status.available:
        warnings.warn(
            "etvk-guard: no Vulkan delegate on this machine; the program runs in the reference "
            "interpreter. `etvk-guard doctor` says what is missing.",
            RuntimeWarning,
            stacklevel=2,
        )
        return _in_reference(path, chosen)
    if chosen == "builder" and not status.guarded:
        reason = status.builder.message if status.builder else "no builder library is loaded"
        raise _errors.error(
            _errors.NO_BUILDER, f"the patched op builder is not in effect: {reason}"
        )
    return _in_runtime(path, chosen, data_path)


def _source(path: str | os.PathLike[str] | bytes, guard: Guard) -> str | bytes:
    """The program to run: its file, or its bytes where it was repaired."""
    source = path if isinstance(path, bytes) else os.fsdecode(path)
    if guard != "repair":
        return source
    result = repair(source)
    return result.data if result.changed else source


def _building(guard: Guard) -> AbstractContextManager[None]:
    builder = current_builder()
    return nullcontext() if builder is None else builder.set_to(guard == "builder")


def _in_runtime(
    path: str | os.PathLike[str] | bytes, guard: Guard, data_path: str | os.PathLike[str] | None
) -> LoadedProgram:
    lib = portable_lib()
    source = _source(path, guard)
    start = lib._load_program if isinstance(source, str) else lib._load_program_from_buffer
    options: dict[str, Any] = {"program_verification": lib.Verification.Minimal}
    if data_path is not None:
        options["data_path"] = os.fsdecode(data_path)
    try:
        program = start(source, **options)
    except _FROM_CPP as problem:
        raise _errors.error(_errors.FAILED, f"cannot be loaded: {problem}") from problem
    names = tuple(program.get_method_name(index) for index in range(program.num_methods()))

    def load_method(name: str, keep: Any = (program, source)) -> RunMethod:
        with _building(guard):
            return cast(RunMethod, keep[0].load_method(name))

    return LoadedProgram(guard, "vulkan", names, load_method)


def _in_reference(path: str | os.PathLike[str] | bytes, guard: Guard) -> LoadedProgram:
    import etvk_guard.reference as reference

    source = _source(path, guard)
    contract = "ideal" if guard == "builder" else "stock"
    names = tuple(method.name for method in open_program(source).methods)

    def load_method(name: str) -> RunMethod:
        return cast(RunMethod, reference.load(source, name, contract).run)

    return LoadedProgram(guard, "reference", names, load_method)


def _to_torch(inputs: Sequence[Any]) -> tuple[tuple[Any, ...], bool]:
    import torch

    tensors = [value for value in inputs if isinstance(value, torch.Tensor | np.ndarray)]
    all_numpy = bool(tensors) and all(isinstance(value, np.ndarray) for value in tensors)
    values = (
        torch.from_numpy(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value
        for value in inputs
    )
    return tuple(
        value.contiguous() if isinstance(value, torch.Tensor) else value for value in values
    ), all_numpy


def _to_numpy(value: Any) -> Any:
    import torch

    return value.detach().numpy() if isinstance(value, torch.Tensor) else value
