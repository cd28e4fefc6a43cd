# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard run`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from etvk_guard import pte
from etvk_guard.cli._text import console, error_line, fail, print_json, styled

if TYPE_CHECKING:
    from etvk_guard.runtime import LoadedProgram

__all__ = ["run"]


class GuardName(str, Enum):
    """How the program is guarded."""

    BUILDER = "builder"
    REPAIR = "repair"
    OFF = "off"


class Against(str, Enum):
    """What outputs are compared with."""

    REFERENCE = "reference"


@dataclass(frozen=True)
class Output:
    """One output, in brief; `error` is relative to the largest value of the reference's."""

    dtype: str
    shape: tuple[int, ...]
    smallest: float | None
    largest: float | None
    error: float | None = None
    tolerance: float | None = None

    @property
    def differs(self) -> bool:
        """Whether it is further from the reference than it may be."""
        return self.error is not None and self.error > (self.tolerance or 0.0)


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The program.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="A.npy", help="An input, in order; may be repeated."),
    ] = None,
    random: Annotated[bool, typer.Option("--random", help="Make up inputs (default).")] = False,
    seed: Annotated[int, typer.Option(help="Of the inputs that are made up.")] = 0,
    method: Annotated[str, typer.Option(help="The method to run.")] = "forward",
    guard: Annotated[
        GuardName | None, typer.Option(help="Default: builder where there is one, else repair.")
    ] = None,
    compare: Annotated[
        Against | None, typer.Option(help="Also run the reference interpreter, and compare.")
    ] = None,
    times: Annotated[int, typer.Option("--time", metavar="N", help="Time N more runs.")] = 0,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="OUT.npz", help="Save the outputs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a program on the Vulkan delegate, or in the reference interpreter where there is none.

    Exit code: 0 it ran, 1 it ran but outputs differ from the reference, 2 there was an error.
    """
    if inputs and random:
        fail("--input and --random exclude each other")
    try:
        values = _read(inputs) if inputs else _random(file, method, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the summary says where it ran
            program = _load(file, guard)
        outputs = program.run(method, *values)
        expected = _reference(file, method, values) if compare else None
        report = _describe(outputs, expected)
        seconds = _time(program, method, values, times)
    except pte.EtvkGuardError as error:
        fail(error_line(file, error))
    if output is not None:
        _save(output, outputs)
    facts = {"file": file, "method": method, "guard": program.guard, "runs_on": program.runs_on}
    if as_json:
        print_json({**facts, "outputs": [asdict(one) for one in report], "seconds": seconds})
    else:
        _print(facts, report, seconds)
    raise typer.Exit(int(any(one.differs for one in report)))


def _load(file: str, guard: GuardName | None) -> LoadedProgram:
    from etvk_guard import runtime

    return runtime.load(file, None if guard is None else guard.value)


def _read(files: Sequence[str]) -> list[Any]:
    values = []
    for file in files:
        try:
            values.append(np.load(file, allow_pickle=False))
        except (OSError, ValueError) as problem:
            fail(f"{file} is no .npy file: {problem}")
    return [value if value.ndim else value.item() for value in values]


def _random(file: str, method: str, seed: int) -> list[Any]:
    from etvk_guard.runtime._inputs import random_inputs

    return list(random_inputs(file, method, seed))


def _reference(file: str, method: str, values: Sequence[Any]) -> list[Any]:
    import torch

    from etvk_guard import reference

    tensors = [torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values]
    return list(reference.run(file, tensors, method, "ideal"))


def _describe(outputs: Sequence[Any], expected: Sequence[Any] | None) -> list[Output]:
    from etvk_guard.runtime._inputs import largest_error, tolerance_for

    report = []
    for index, output in enumerate(outputs):
        array = np.asarray(output)
        numbers = array.astype(np.float64) if array.size else np.zeros(1)
        error = None if expected is None else largest_error(array, expected[index])
        report.append(
            Output(
                dtype=str(array.dtype),
                shape=array.shape,
                smallest=float(numbers.min()),
                largest=float(numbers.max()),
                error=error,
                tolerance=None if expected is None else tolerance_for(array),
            )
        )
    return report


def _time(
    program: LoadedProgram, method: str, values: Sequence[Any], times: int
) -> dict[str, float] | None:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        program.run(method, *values)
        taken.append(time.perf_counter() - start)
    return {"smallest": min(taken), "median": median(taken), "runs": times} if taken else None


def _save(file: str, outputs: Sequence[Any]) -> None:
    arrays: dict[str, Any] = {f"output{i}": np.asarray(value) for i, value in enumerate(outputs)}
    try:
        np.savez(file, **arrays)
    except OSError as problem:
        fail(f"{file} cannot be written: {problem}")


def _print(
    facts: dict[str, str], report: Sequence[Output], seconds: dict[str, float] | None
) -> None:
    out = console()
    on_vulkan = facts["runs_on"] == "vulkan"
    place = "on the Vulkan delegate" if on_vulkan else "in the reference interpreter"
    line = f": {facts['method']} ran {place}, guard {facts['guard']}"
    out.print(styled((facts["file"], "bold"), line))
    if not on_vulkan:
        out.print(styled(("No Vulkan delegate here: `etvk-guard doctor` says more.", "yellow")))
    for index, one in enumerate(report):
        shape = "x".join(str(size) for size in one.shape) or "scalar"
        text = f"  output {index}: {one.dtype} {shape}, {one.smallest:.6g} to {one.largest:.6g}"
        out.print(styled(text))
        if one.error is not None:
            verdict = ("differs from", "red") if one.differs else ("agrees with", "green")
            tail = f" the reference: error {one.error:.2e}, allowed {one.tolerance:.0e}"
            out.print(styled("    ", verdict, tail))
    if seconds is not None:
        low, mid = seconds["smallest"] * 1e3, seconds["median"] * 1e3
        out.print(styled(f"  {seconds['runs']} runs: {low:.3f} ms at best, {mid:.3f} ms median"))
