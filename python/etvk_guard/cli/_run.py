# SPDX-License-Identifier: Apache-2.0
"""`etvk-guard run`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from etvk_guard import pte
from etvk_guard.cli._text import console, error_line, fail, print_json, styled

if TYPE_CHECKING:
    from etvk_guard.runtime import LoadedProgram

__all__ = ["run"]

SHOWN = 4  # values of an output
_GELU = (
    "the delegate computes every gelu in its tanh form: where the program means the exact one, "
    "errors of 2e-4 come of it (docs/known-limits.md)"
)


class Guard(str, Enum):
    """How norms that stock aborts on are run."""

    BUILDER = "builder"
    REPAIR = "repair"
    OFF = "off"


class Compare(str, Enum):
    """What results are compared with."""

    REFERENCE = "reference"


@dataclass(frozen=True)
class Output:
    """An output, and how far it is from what it is compared with."""

    dtype: str
    shape: list[int]
    first: list[float]
    error: float | None = None
    tolerance: float | None = None

    @property
    def right(self) -> bool:
        """Whether it is within the tolerance, or is not compared."""
        return self.error is None or (self.tolerance is not None and self.error <= self.tolerance)


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The program.")],
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="FILE.npy", help="One for each input.")
    ] = None,
    random: Annotated[bool, typer.Option("--random", help="Make inputs up.")] = False,
    seed: Annotated[int, typer.Option(help="Of --random.")] = 0,
    method: Annotated[str, typer.Option(help="The method to run.")] = "forward",
    guard: Annotated[
        Guard | None, typer.Option(help="builder where it is in effect, else repair.")
    ] = None,
    compare: Annotated[Compare | None, typer.Option(help="What to compare with.")] = None,
    times: Annotated[int, typer.Option("--time", metavar="N", min=0, help="Time N runs.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a method of a program on Vulkan, or in the reference interpreter without a delegate.

    Exit code: 0, 1 if the results differ from the reference, 2 if there was an error.
    """
    if inputs and random:
        fail("give either --input or --random")
    try:
        program, notes = _load(file, guard)
        values = _values(file, method, inputs, random, seed)
        results = program.run(method, *values)
        seconds = _time(lambda: program.run(method, *values), times)
        expected = _expected(file, method, values) if compare else None
    except pte.EtvkGuardError as error:
        fail(error_line(file, error))
    except (ImportError, OSError, ValueError) as error:
        fail(f"{file}: {error}")
    outputs = [
        _output(result, None if expected is None else expected[index])
        for index, result in enumerate(results)
    ]
    if any(not made.right for made in outputs) and _has_gelu(file):
        notes.append(_GELU)
    for note in notes:
        console(stderr=True).print(styled(("note: ", "yellow"), note))
    facts = {"file": file, "method": method, "runs_on": program.runs_on, "guard": program.guard}
    if as_json:
        print_json({**facts, "outputs": [asdict(made) for made in outputs], "seconds": seconds})
    else:
        _print(facts, outputs, seconds)
    raise typer.Exit(0 if all(made.right for made in outputs) else 1)


def _load(file: str, guard: Guard | None) -> tuple[LoadedProgram, list[str]]:
    """The program, and what was said while it was loaded."""
    from etvk_guard import runtime

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RuntimeWarning)
        program = runtime.load(file, guard.value if guard else None)
    return program, [str(warning.message) for warning in said]


def _values(
    file: str, method: str, inputs: Sequence[str] | None, random: bool, seed: int
) -> list[Any]:
    from etvk_guard.runtime._inputs import random_inputs

    if random:
        return list(random_inputs(file, method, seed))
    if not inputs:
        _ask_for_inputs(file, method)
    return [_array(name) for name in inputs or ()]


def _array(name: str) -> Any:
    import numpy as np

    try:
        return np.load(name, allow_pickle=False)
    except OSError as error:
        fail(f"--input {name}: {error.strerror or error}")
    except ValueError:
        fail(f"--input {name}: it is no .npy file, as numpy.save writes one")


def _ask_for_inputs(file: str, method: str) -> None:
    """Fail, with what the method takes, where it takes anything."""
    from etvk_guard.runtime._inputs import input_words

    words = input_words(file, method)
    if words:
        fail(
            f"{file}: {method} takes {', '.join(words)}: "
            "give --input FILE.npy for each, or --random"
        )


def _expected(file: str, method: str, values: Sequence[Any]) -> list[Any]:
    """What the program means, whatever a stock delegate makes of it."""
    import numpy as np
    import torch

    from etvk_guard import reference

    given = [torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values]
    return [tensor.numpy() for tensor in reference.run(file, given, method, contract="ideal")]


def _has_gelu(file: str) -> bool:
    methods = pte.open_program(file).methods
    graphs = [delegate.graph for method in methods for delegate in method.delegates]
    return any(op.name == "aten.gelu.default" for graph in graphs if graph for op in graph.ops)


def _time(call: Callable[[], object], times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def _output(result: Any, expected: Any) -> Output:
    import numpy as np

    from etvk_guard.runtime._inputs import largest_error, tolerance_for

    array = np.asarray(result)
    first = [float(value) for value in array.ravel()[:SHOWN]]
    made = Output(str(array.dtype), list(array.shape), first)
    if expected is None:
        return made
    error, tolerance = largest_error(result, expected), tolerance_for(expected)
    return Output(made.dtype, made.shape, first, error, tolerance)


def _print(facts: dict[str, str], outputs: list[Output], seconds: list[float]) -> None:
    out = console()
    where = f": {facts['method']} on {facts['runs_on']}, guard {facts['guard']}"
    out.print(styled((facts["file"], "bold"), where))
    for index, made in enumerate(outputs):
        values = ", ".join(f"{value:.6g}" for value in made.first)
        more = ", ..." if len(made.first) == SHOWN else ""
        out.print(styled(f"  output {index}: {made.dtype} {made.shape} [{values}{more}]"))
        if made.error is not None:
            verdict = ("right", "green") if made.right else ("WRONG", "bold red")
            bound = f" (relative error {made.error:.2g}, at most {made.tolerance:g})"
            out.print(styled("    ", verdict, bound))
    if seconds:
        low, middle = min(seconds) * 1e3, median(seconds) * 1e3
        out.print(f"  {len(seconds)} runs: at least {low:.3f} ms, median {middle:.3f} ms")
