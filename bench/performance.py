# SPDX-License-Identifier: Apache-2.0
"""Writes docs/performance.md from what the benches printed, which is kept in bench/results.

    python bench/performance.py [--check]

bench/results/DEVICE holds about.json (device, driver, versions, date, commands), kernels.json
(etvk-guard-kernels --bench --json), chains.json (kernels_chains.py table) and, where there is
CUDA, cuda.json (kernels_cuda.py). With --check nothing is written: exit code 1 if the page is old.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "performance.md"

Row = dict[str, Any]
Key = tuple[str, str, int, int]  # dtype, storage, rows, width
MIXED = "texture3d/buffer"  # x and out are textures, weight and shift buffers
NAMES = {"buffer": "buffer", "texture3d": "texture", MIXED: "texture, weight in a buffer"}


@dataclass
class Device:
    """What was measured on one device."""

    about: Row
    kernels: dict[
        Key, Row
    ]  # RMS norm, a weight of one row, tensors that stay in caches if they fit
    cold: dict[Key, Row]
    operands: list[Row]  # every kind of weight and shift
    chains: dict[tuple[str, Key], Row]  # by run
    cuda: dict[tuple[str, int, int], Row]


def key_of(row: Row) -> Key:
    return row["dtype"], storage_of(row), row["rows"], row["width"]


def storage_of(row: Row) -> str:
    operands = row.get("operand_storage", row["storage"])
    return row["storage"] if operands == row["storage"] else f"{row['storage']}/{operands}"


def read(name: str, file: str) -> Any:
    path = RESULTS / name / file
    return json.loads(path.read_text()) if path.exists() else {"rows": []}


def read_device(name: str) -> Device:
    rows = read(name, "kernels.json")["rows"]
    plain = [r for r in rows if (r["norm"], r["weight"], r["shift"]) == ("rms", "row", "none")]
    shape = operand_shape(rows)
    return Device(
        about=read(name, "about.json"),
        kernels={key_of(r): r for r in reversed(plain) if not r["cold"]},
        cold={key_of(r): r for r in plain if r["cold"]},
        operands=[r for r in rows if (r["rows"], r["width"]) == shape],
        chains={(r["run"], key_of(r)): r for r in read(name, "chains.json")["rows"]},
        cuda={
            (r["dtype"], r["rows"], r["width"]): r
            for r in read(name, "cuda.json")["rows"]
            if not r["cold"]
        },
    )


def operand_shape(rows: list[Row]) -> tuple[int, int]:
    """The largest shape that every kind of operand was timed at; (0, 0) if there is none."""
    shapes = {(r["rows"], r["width"]) for r in rows if r["weight"] == "full"}
    return max(shapes, key=lambda shape: shape[0] * shape[1], default=(0, 0))


# ---- tables


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def us(row: Row | None, name: str = "us") -> str:
    value = row.get(name) if row else None
    return f"{value:.2f}" if value else "-"


def label(key: Key) -> str:
    dtype, storage, rows, width = key
    return f"{rows}x{width} {dtype} {NAMES[storage]}"


@dataclass
class Target:
    """What was to be reached, and what was."""

    what: str
    measured: float
    limit: float
    unit: str = "us"
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def cells(self) -> list[str]:
        sign = "at least" if self.at_least else "at most"
        verdict = "met" if self.met else "**missed**"
        return [self.what, f"{self.measured:.2f}", f"{sign} {self.limit:.2f} {self.unit}", verdict]


def targets_of(device: Device, key: Key) -> Iterator[Target]:
    dtype, _, rows, width = key
    ours, cuda = device.kernels[key], device.cuda[dtype, rows, width]
    name = label(key)
    if rows == 1:
        yield Target(f"{name}: CUDA's time", ours["us"], cuda["us"])
        yield from against_stock(device, key, 0.5)
    elif rows == 2048:
        yield Target(f"{name}: 1.2 of CUDA's time", ours["us"], 1.2 * cuda["us"])
        yield from against_stock(device, key, 0.4)
    else:
        yield Target(f"{name}: ahead of CUDA", ours["us"], cuda["us"])
        share = 100 * ours["us_copy"] / ours["us"]
        yield Target(f"{name}: 80% of the copy's speed", share, 80, "%", at_least=True)


# How a norm was timed in the delegate: words, what names the run, and the measure.
WAYS = (("difference of chains", "_untimed", "us"), ("timestamps", "", "us_gpu"))


def against_stock(device: Device, key: Key, limit: float) -> Iterator[Target]:
    for words, run, measure in WAYS:
        stock = device.chains[f"stock_constant{run}", key][measure]
        patched = device.chains[f"builder_constant{run}", key][measure]
        yield Target(f"{label(key)}: {limit} of stock, {words}", patched / stock, limit, "")


NAMED = ((1, 4096), (2048, 2048), (8192, 4096), (16384, 4096))


def target_rows(device: Device) -> list[Target]:
    keys = [
        (dtype, storage, *shape)
        for dtype in ("float", "half")
        for storage in ("buffer", "texture3d")
        for shape in NAMED
    ]
    return [target for key in keys for target in targets_of(device, key)]


def worst_against_stock(device: Device, suffix: str, measure: str) -> tuple[float, Key]:
    ratios = [
        (device.chains[f"builder_constant{suffix}", key][measure] / row[measure], key)
        for (run, key), row in device.chains.items()
        if run == f"stock_constant{suffix}"
    ]
    return max(ratios)


def kernel_table(device: Device, dtype: str) -> str:
    rows = []
    for key, row in sorted(device.kernels.items(), key=lambda item: (item[0][1], item[0][2:])):
        if key[0] != dtype:
            continue
        cuda = device.cuda.get((dtype, *key[2:]))
        share = f"{100 * row['us_copy'] / row['us']:.0f}%"
        cells = [us(row), us(device.cold.get(key)), us(cuda), us(row, "us_copy"), share]
        rows.append([f"{NAMES[key[1]]} {key[2]}x{key[3]}", *cells, us(row, "us_texture_copy")])
    head = ["", "ours", "cold", "CUDA", "copy", "of its speed", "copy of a texture"]
    return table(head, rows)


RUNS = ("stock_constant", "builder_constant", "builder_runtime", "stock_repaired")


def chain_table(device: Device, dtype: str, suffix: str, measure: str) -> str:
    keys = sorted({k for _, k in device.chains if k[0] == dtype}, key=lambda k: (k[1], k[2:]))
    rows = []
    for key in keys:
        found = [device.chains.get((run + suffix, key)) for run in RUNS]
        ratio = found[1][measure] / found[0][measure]  # type: ignore[index]
        cells = [us(row, measure) for row in found]
        rows.append([f"{NAMES[key[1]]} {key[2]}x{key[3]}", *cells, f"{ratio:.2f}"])
    head = ["", "stock, constant", "ours, constant", "ours, run-time", "stock, repaired",
            "ours / stock"]  # fmt: skip
    return table(head, rows)


def operand_table(device: Device) -> str:
    rows = []
    for norm in ("rms", "layer"):
        for storage in NAMES:
            kinds = [r for r in device.operands if (r["norm"], storage_of(r)) == (norm, storage)]
            kinds = [r for r in kinds if r["dtype"] == "float" and not r["cold"]]
            if not kinds:
                continue
            seen: dict[tuple[str, str], Row] = {(r["weight"], r["shift"]): r for r in kinds}
            bare = seen["none", "none"]
            for (weight, shift), row in seen.items():
                need = bare["us"] + bare["us_copy"] * (row["bytes"] / bare["bytes"] - 1)
                cells = [us(row), f"{need:.2f}", f"{row['us'] / need:.2f}"]
                rows.append([f"{norm} {NAMES[storage]}, weight {weight}, shift {shift}", *cells])
    return table(["", "us", "bare norm and the bytes", "ratio"], rows)


# ---- the page


def about(device: Device) -> str:
    facts = [f"- {name}: {value}" for name, value in device.about["facts"].items()]
    commands = "\n".join(device.about["commands"])
    return "\n".join(facts) + f"\n\n```sh\n{commands}\n```"


GPU = """\
GPU microseconds of a norm, RMS with a weight `[D]`: the difference of a long chain of dependent
norms and of one, over the length; the fastest of many runs. "Cold" goes round tensors of 512 MB in
all, so that no cache holds them. CUDA is `F.rms_norm` of PyTorch, fused, timed the same way in the
same run through graphs. The copy is of the same bytes between buffers, and between textures, by a
shader. Of a row of few microseconds, 1.9 are the dispatch and its barrier.
"""

CHAINS = """\
Inside the delegate, each as it would run in an app: the stock file with a constant weight on the
stock delegate and under the builder; the faulty file with a run-time weight under the builder
(stock aborts on it); and that file repaired, on the stock delegate (norm, then multiply).
Microseconds a norm by the difference of chains of 257 norms (65 of the largest) and of one, on the
host's clock, with the delegate's timestamps off, as in an app.
"""

STAMPS = """\
The same by the delegate's own timestamps, which wrap each dispatch and cost about 1.2 us.
"""


WHY_MISSED = """\
The ratios to stock are given twice: by the difference of chains without timestamps, as an app has
it, and by the delegate's timestamps, which add 1.2 us to both sides. Of the misses, 0.4 of stock's
time at 2048x2048 would be 5.8 us in a float buffer, where a copy alone takes 6.8; 4.8 us in a half
texture, where a copy of textures takes 5.6; and 5.0 us in a half buffer, where a copy takes 4.8.
For few rows in textures the kernel has changed since this run: the loop that writes has its
branches within, as in a run 10 minutes earlier. There 1x4096 with a constant took 3.45 (float)
and 3.08 us (half) by the difference of chains, 0.47 and 0.46 of stock.
"""

TRIED = """\
For textures, with trial kernels in some 3,000 variants, microseconds:

- The order in which threads go over a texture. A copy of 8192x4096 halves takes 48.6 row by row,
  36.0 if neighbouring threads take two neighbouring rows, 35.7 with four and 35.0 with eight. In
  the norm four rows are no better than two (47.2 and 44.1), as a thread's sums get dearer. If
  neighbouring threads share a row and each has several: 54.
- Two rows a thread at once, with a weight kept in registers for both: in use, instead of two bands
  of rows one after the other (43.0 for 8192x4096 halves then, 41.3 now). Four rows: 5.7 instead of
  6.1 for 2048x2048 halves, but 47.6 instead of 41.7 for 8192x4096. Four chunks of a row instead of
  eight: 70.7 instead of 71.8 for 8192x4096 floats, but 8.9 instead of 8.5 for 2048x2048.
- A float weight and shift of one row, 2048x4096: both kept before the sums, 24.7; loaded after
  them, a chunk for both rows at once, 20.0, in use. The same with a weight and shift for a batch
  of 8 rows: 29.0 and 27.6; with four rows a thread, 26.7, not in use.
- Weight and shift in buffers, x and out in textures: in use for constants. One row of both,
  2048x4096 floats: 18.4 instead of 20.0; 512x8192: 8.6 instead of 10.2; 2048x2048 halves: 5.6
  instead of 6.2. A texture unit takes a load of four floats in four turns, a buffer's in one.
- Some 264 or 528 workgroups that each take several bands in turn, and load operands once: 18.95
  instead of 20.0 for 2048x4096 with weight and shift, but 73.7 instead of 70.8 for 8192x4096; not
  in use.
- The sums of such threads, 8192x4096 halves: a subgroup takes one row's (in use) 42.4, each
  subgroup its part of all 43.6, shared memory alone 42.6, shuffles 42.4. With four rows a thread
  shuffles get to 41.0; not in use, as it asks more of a device.
- Halves of two rows packed in registers: in use, 42.4 instead of 43.1. Of one row it changes
  nothing on this device and costs 7% on Mesa's CPU driver (64x2048).
- A weight kept in shared memory: 40.8 instead of 44.1 for 8192x4096 halves, but 10.0 instead of 9.0
  for 2048x2048 floats.
- 1x4096 with other numbers of threads, shares of a row and sums by shuffles: at best 3.34 instead
  of 3.45 for floats, 2.93 instead of 3.03 for halves; not in use.
- imageLoad instead of texelFetch: 3.08 instead of 3.11 at 1x4096 floats. The delegate binds what is
  read as a sampled image.
"""


def targets_section(device: Device) -> str:
    targets = target_rows(device)
    met = sum(target.met for target in targets)
    never = []
    for words, run, measure in WAYS:
        ratio, key = worst_against_stock(device, run, measure)
        what = f"never slower than stock, {words}; nearest: {label(key)}"
        never.append(Target(what, ratio, 1.0, ""))
    rows = [target.cells() for target in [*targets, *never]]
    head = ["target", "measured", "limit", ""]
    return f"{met} of {len(targets)} are met.\n\n{table(head, rows)}\n\n{WHY_MISSED.strip()}"


def gpu_section(device: Device) -> str:
    parts = [f"## {device.about['name']}", about(device), "### Targets", targets_section(device)]
    parts += ["### What was tried", TRIED]
    for dtype in ("float", "half"):
        parts += [f"### Kernels alone, {dtype}", GPU if dtype == "float" else ""]
        parts += [kernel_table(device, dtype)]
    for dtype in ("float", "half"):
        parts += [f"### In the delegate, {dtype}", CHAINS if dtype == "float" else ""]
        parts += [chain_table(device, dtype, "_untimed", "us")]
    for dtype in ("float", "half"):
        parts += [f"### By timestamps, {dtype}", STAMPS if dtype == "float" else ""]
        parts += [chain_table(device, dtype, "", "us_gpu")]
    parts += ["### Every weight and shift, float", OPERANDS, operand_table(device)]
    return "\n\n".join(part.strip() for part in parts if part)


OPERANDS = """\
A norm with a weight and a shift should cost what one without costs, and the time that a copy takes
for their bytes. 2048 rows of 4096; "batch" is `[B,1,D]` with 8 rows a batch.
"""


def cpu_section(device: Device) -> str:
    ratio, key = worst_against_stock(device, "", "us")
    verdict = "met" if ratio <= 1 else f"**missed** at {label(key)}"
    intro = (
        "Microseconds by the difference of chains inside the delegate. Target: no slower "
        f"than stock for any shape: {verdict}, the largest ratio is {ratio:.2f}."
    )
    parts = [f"## {device.about['name']}", about(device), intro]
    for dtype in ("float", "half"):
        parts += [f"### {dtype}", chain_table(device, dtype, "", "us")]
    return "\n\n".join(parts)


HEAD = """\
<!-- Written by bench/performance.py: do not edit. -->
# Performance of the norm kernels and the op builder

Each figure comes from one command, given with it; the raw results are in bench/results. What missed
its target says so.
"""


def page() -> str:
    sections = [
        HEAD.strip(),
        gpu_section(read_device("h200")),
        cpu_section(read_device("lavapipe")),
    ]
    return "\n\n".join(sections) + "\n"


def main() -> int:
    """Write the page, or say whether it is new."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = page()
    if options.check:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
