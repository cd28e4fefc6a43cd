# SPDX-License-Identifier: Apache-2.0
"""Times norms inside the Vulkan delegate, stock and patched, by the difference of two chains.

    python bench/kernels_chains.py write FOLDER [--cpu]
    runner --backend LIB [--builder LIB [--guard off]] --time N FOLDER/constant > RESULT.txt
    python bench/kernels_chains.py table DEVICE NAME=RESULT.txt... > chains.json

`write` makes chains of many norms (length_of) and of one, cases for tests/vulkan/runner.cpp: in
FOLDER/constant with a constant weight, in FOLDER/runtime with a weight that is an input, and in
FOLDER/repaired the latter repaired. `table` reads what the runner printed, in one run or
several of the same NAME (the least counts), and prints JSON: microseconds a norm. With `--time N`
the runner does each program N times and prints the least of three times: of a whole inference by
the host's clock (of two of which `us` is the difference, over the norms between them), of a norm
by the delegate's own timestamps (`us_gpu`; only where it was built with ET_EVENT_TRACER_ENABLED),
and of the process's CPUs. The first has what the delegate does between two dispatches. Where it
was built with that definition, the timestamps are among it: for what an app sees, take a delegate
without.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "vulkan"))

from make_cases import write_value

from chains import STORAGES, Chain, program
from etvk_guard import pte

NAMED = ((1, 4096), (2048, 2048), (8192, 4096), (16384, 4096))
MORE = (
    (1, 256), (1, 2048), (1, 16384), (16, 256), (32, 4096), (128, 1024), (4096, 128), (512, 8192),
    (2048, 4095),
)  # fmt: skip
ON_CPU = ((1, 256), (1, 4096), (64, 1000), (64, 2048), (256, 1024))
TOLERANCE = {"float": 1e-4, "half": 6e-2}  # of the norms of a long chain


def length_of(rows: int, width: int) -> int:
    """Norms in the long chain: enough for the host's clock to see the difference."""
    return 257 if rows * width <= 1 << 22 else 65


def chains(shapes: tuple[tuple[int, int], ...]) -> Iterator[Chain]:
    for rows, width in shapes:
        for storage in STORAGES:
            for dtype in ("float", "half"):
                for constant in (True, False):
                    for length in (1, length_of(rows, width)):
                        yield Chain(rows, width, dtype, storage, constant, length)


def add_case(chain: Chain, data: bytes, folder: Path, listing: TextIO) -> None:
    (folder / f"{chain.name}.pte").write_bytes(data)
    listing.write(f"case {chain.name} {chain.name}.pte {TOLERANCE[chain.dtype]}\n")
    for index, tensor in enumerate(chain.inputs()):
        write_value("input", tensor, folder / f"{chain.name}.in{index}", listing)
    write_value("output", chain.expected(), folder / f"{chain.name}.out0", listing)


def write(folder: Path, shapes: tuple[tuple[int, int], ...]) -> None:
    with ExitStack() as files:
        listings = {}
        for name in ("constant", "runtime", "repaired"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            listings[name] = files.enter_context(open(folder / name / "cases.txt", "w"))
        for chain in chains(shapes):
            data = program(chain)
            first = "constant" if chain.constant else "runtime"
            add_case(chain, data, folder / first, listings[first])
            if not chain.constant:
                add_case(chain, pte.repair(data).data, folder / "repaired", listings["repaired"])


LINE = re.compile(
    r"time +(\d+)x(\d+)_([a-z]+)_(\w+)_(\d+) +([\d.]+) us, of which ([\d.]+) us a norm"
    r"(?:, ([\d.]+))?"
)


Times = dict[tuple[str, ...], tuple[float, ...]]


def least(times: Times, run: str, text: str) -> None:
    """Keep the least microseconds of each program that `text` tells: of all, a norm and CPUs."""
    if wrong := re.findall(r"^WRONG.*", text, re.MULTILINE):
        raise SystemExit("\n".join([f"{run}: the delegate's results are wrong", *wrong]))
    for *kind, whole, of_norm, cpu in LINE.findall(text):
        new = (float(whole), float(of_norm), float(cpu or 0))
        old = times.get((run, *kind), new)
        times[(run, *kind)] = tuple(map(min, new, old))


def rows_of(times: Times) -> list[dict[str, object]]:
    """A row for each kind of chain and run."""
    rows = []
    for (run, height, width, dtype, storage, length), long in times.items():
        if length != "1":
            one = times[run, height, width, dtype, storage, "1"]
            kind = {"rows": int(height), "width": int(width), "dtype": dtype, "storage": storage,
                    "chain": int(length)}  # fmt: skip
            by_difference = [(a - b) / (int(length) - 1) for a, b in zip(long, one, strict=True)]
            us = {"us": by_difference[0], "us_gpu": long[1], "us_cpu": by_difference[2]}
            rows.append({"run": run, **kind, **us})
    return rows


def table(device: str, results: list[str]) -> None:
    times: Times = {}
    for result in results:
        run, _, path = result.partition("=")
        least(times, run, Path(path).read_text())
    print(json.dumps({"device": device, "rows": rows_of(times)}, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--cpu", action="store_true", help="shapes for a CPU driver")
    tabling = commands.add_parser("table")
    tabling.add_argument("device")
    tabling.add_argument("results", nargs="+", metavar="NAME=RESULT")
    options = parser.parse_args()
    if options.command == "write":
        write(options.folder, ON_CPU if options.cpu else NAMED + MORE)
    else:
        table(options.device, options.results)


if __name__ == "__main__":
    main()
