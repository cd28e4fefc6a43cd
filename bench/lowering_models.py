# SPDX-License-Identifier: Apache-2.0
"""Lowers the models of zoo with stock and under guard, and writes docs/models.md.

    python bench/lowering_models.py [--backend libvulkan_backend.so] [--results FILE] [NAME...]

Each program is run in the reference interpreter under stock rules and, with --backend, on that
Vulkan delegate (`VK_ICD_FILENAMES` picks the driver), in a process of its own, so that a crash or a
hang is a result like another. With ETVK_GUARD_BUILDER, a third program of each runs under the op
builder: stock's, unrepaired, without the op that no runtime has. Results are kept in FILE (JSON),
model by model, and the page is written from all that are there: a run can be stopped and taken up
again. --which picks the lowerings to do. --keep FOLDER keeps the programs as cases for
tests/vulkan/runner.cpp, in FOLDER/stock and so on.
"""

from __future__ import annotations

import argparse
import functools
import json
import logging
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "vulkan"))

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.patterns import fusable_patterns
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.dialects._ops import ops as exir_ops
from make_cases import write_value

import etvk_guard
import zoo
from etvk_guard import reference, runtime
from etvk_guard.lowering import Decision, GuardedVulkanPartitioner, LoweringReport

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
TOLERANCE = 1e-4  # relative to the largest value; a model is hundreds of float32 ops
PACKAGES = ("executorch", "torch", "transformers", "diffusers", "torchvision")
NORM_RULES = ("rms_norm", "layer_norm")
LIMIT = 900  # seconds for one lowering and its runs
LENGTH = 240  # of a message on the page
WHICH = ("stock", "builder", "guarded")


def _error(outputs: list[Any], expected: torch.Tensor) -> float:
    scale = max(float(expected.double().abs().max()), 1e-9)
    return float((outputs[0].double() - expected.double()).abs().max()) / scale


def _message(failure: object) -> str:
    """The start of a message, or of its cause's, without what is of this machine only."""
    while isinstance(failure, Exception) and failure.__cause__ is not None:
        failure = failure.__cause__
    line = " ".join(str(failure).split("`etvk-guard")[0].strip().splitlines()[:2])
    line = re.sub(r"\S*/(?=backends/vulkan/|site-packages/)", "", line)
    return re.sub(r"0x[0-9a-f]+", "0x..", line)[:LENGTH]


def _run(run: Any, expected: torch.Tensor) -> str:
    """What a runtime does with a program, in words."""
    try:
        error = _error(run(), expected)
    except Exception as failure:
        return f"aborts: {_message(failure)}"
    return f"right, {error:.0e}" if error <= TOLERANCE else f"wrong, {error:.0e}"


def _norms(report: LoweringReport) -> dict[str, Any]:
    """What became of the norms: how many, in how many ops before and after."""
    entries = [e for e in report if e.rule in NORM_RULES]
    return {
        "count": len(entries),
        "before": sum(e.ops_before for e in entries),
        "after": sum(e.ops_after for e in entries),
        "decisions": dict(Counter(e.decision.value for e in entries)),
    }


def partitioner_of(which: str) -> Any:
    if which == "guarded":
        return GuardedVulkanPartitioner()
    missing = {exir_ops.edge.aten.logical_not.default} if which == "builder" else None
    return VulkanPartitioner(operator_blocklist=missing)


def lower(name: str, which: str, out: Path, backend: str, keep: Path | None) -> None:
    """One lowering of one model, in this process: what came out, and what runtimes make of it.

    Each step's result is in the file `out` (JSON) before the next is taken.
    """
    partitioner = partitioner_of(which)
    try:
        module, inputs = zoo.make(name)
        with torch.no_grad():
            expected = module(*inputs)
            program = torch.export.export(module, inputs)
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
        data = bytes(edge.to_executorch().buffer)
    except Exception as failure:
        out.write_text(json.dumps({"failed": f"{type(failure).__name__}: {_message(failure)}"}))
        return
    made = _describe(data)
    if which == "guarded":
        made |= _decisions(partitioner.report)
    if keep is not None:
        _keep(name, data, inputs, expected, keep / which)
    contract = "ideal" if which == "builder" else "stock"
    made["reference"] = _run(lambda: reference.run(data, inputs, contract=contract), expected)
    out.write_text(json.dumps(made))
    status = runtime.enable_vulkan(backend) if backend else None
    guard: runtime.Guard = "builder" if which == "builder" else "off"
    if status and (status.guarded if which == "builder" else status.available):
        out.write_text(json.dumps({**made, "delegate": "aborts: the process ended"}))
        made["delegate"] = _run(lambda: runtime.load(data, guard=guard).forward(*inputs), expected)
        out.write_text(json.dumps(made))


def _describe(data: bytes) -> dict[str, Any]:
    method = etvk_guard.open_program(data).methods[0]
    ops = Counter(op.name for d in method.delegates if d.graph for op in d.graph.ops)
    return {
        "bytes": len(data),
        "delegates": len(method.delegates),
        "ops": sum(ops.values()),
        "fused_norms": ops["et_vk.rms_norm.default"] + ops["aten.native_layer_norm.default"],
        "cpu": dict(Counter(operator for operator, _ in method.operators)),
        "findings": dict(Counter(f.code for f in etvk_guard.check(data).findings)),
    }


def _decisions(report: LoweringReport) -> dict[str, Any]:
    left = [e for e in report if e.decision in (Decision.CPU, Decision.UNFUSED)]
    others = (e.rule for e in report if e.rule not in (*NORM_RULES, "constant_scalar"))
    return {
        "norms": _norms(report),
        "left": [f"{e.form}: {e.reason}" for e in left],
        "other": dict(Counter(others)),
    }


def _keep(name: str, data: bytes, inputs: Any, expected: torch.Tensor, folder: Path) -> None:
    """Keep a program as a case of the runner; `cat *.case > cases.txt` makes its list."""
    folder.mkdir(parents=True, exist_ok=True)
    short = re.sub(r"\W+", "_", name.lower())
    (folder / f"{short}.pte").write_bytes(data)
    with open(folder / f"{short}.case", "w") as listing:
        listing.write(f"case {short} {short}.pte {TOLERANCE}\n")
        for index, tensor in enumerate(inputs):
            write_value("input", tensor, folder / f"{short}.in{index}", listing)
        write_value("output", expected, folder / f"{short}.out0", listing)


def in_child(name: str, which: str, options: argparse.Namespace) -> dict[str, Any]:
    """`lower`, in a process of its own, which may die or hang."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, __file__, name, "--child", which, str(out)]
        for flag, value in (("--backend", options.backend), ("--keep", options.keep)):
            command += [flag, str(value)] if value else []
        end = ""
        try:
            done = subprocess.run(command, timeout=LIMIT, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [""])[-1]
                end = f"exit code {done.returncode}: {_message(last)}"
        except subprocess.TimeoutExpired:
            end = f"no end after {LIMIT} s"
        if not out.exists():
            return {"failed": end or "no result"}
        made: dict[str, Any] = json.loads(out.read_text())
        if end:
            made["delegate"] = f"aborts: {end}"
        return made


def _outcome(result: dict[str, Any]) -> str:
    if "failed" in result:
        return "not lowered"
    said = str(result.get("delegate", result["reference"]))
    return said.split(":")[0]


def _cell(result: dict[str, Any]) -> str:
    """Delegates, their ops, and ops on the CPU, of one lowering."""
    if "failed" in result:
        return "-"
    counts = sorted((op.removeprefix("aten::"), n) for op, n in result["cpu"].items())
    cpu = ", ".join(op if n == 1 else f"{op} x{n}" for op, n in counts) or "none"
    return f"{result['delegates']}, {result['ops']} ops; CPU: {cpu}"


def _row(name: str, result: dict[str, Any]) -> str:
    stock, guarded = result["stock"], result["guarded"]
    norms = guarded.get("norms")
    if norms and norms["count"]:
        per = [f"{norms[key] / norms['count']:.3g}" for key in ("before", "after")]
        words = ", ".join(f"{n} {what}" for what, n in sorted(norms["decisions"].items()))
        about = f"{words}: {per[0]} to {per[1]}"
    else:
        about = "none rewritten"
    patched = _outcome(result["builder"]) if "builder" in result else "-"
    cells = [name, _outcome(stock), patched, _cell(stock), _outcome(guarded), _cell(guarded), about]
    return "| " + " | ".join(cells) + " |"


def _said(result: dict[str, Any]) -> str:
    if "failed" in result:
        return f"failed: {result['failed']}"
    return str(result.get("delegate", result.get("reference", "")))


def _notes(name: str, result: dict[str, Any]) -> list[str]:
    lines = []
    for where in (which for which in WHICH if which in result):
        said = _said(result[where])
        if said.startswith(("failed", "aborts", "wrong")):
            lines.append(f"- {name}, {where}: {_message(said.removeprefix('failed: '))}")
    lines += [
        f"- {name}, kept out or left unfused: {line}"
        for line in dict.fromkeys(result["guarded"].get("left", []))
    ]
    return lines


def page(results: dict[str, Any]) -> str:
    """docs/models.md."""
    known = {name: results["models"][name] for name in zoo.MODELS if name in results["models"]}
    versions = ", ".join(f"{k} {v}" for k, v in results["versions"].items())
    where = results.get("device") or "the reference interpreter under stock rules"
    rows = [_row(name, result) for name, result in known.items()]
    notes = [line for name, result in known.items() for line in _notes(name, result)]
    head = (
        "| model | stock | under the builder | delegates, stock | guarded | delegates, guarded "
        "| norms, ops each |"
    )
    return "\n".join(
        [
            "# Models",
            "",
            "Made by `bench/lowering_models.py`; do not edit. Tiny configs, random weights,",
            f"float32, lowered with {versions}.",
            f"Run on {where}: the error to eager is relative to the largest value.",
            '"Under the builder": lowered by stock, but for logical_not, which no runtime has, and',
            "run unrepaired with our op builder.",
            'Norms are what the guard rewrote; "ops each" counts the ops of a norm and of what',
            "multiplies it, as exported and after.",
            "",
            head,
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            "## Notes",
            "",
            *(notes or ["None."]),
            "",
        ]
    )


def main() -> int:
    """Lower what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend")
    parser.add_argument("--device", help="how the page names the delegate's device")
    parser.add_argument("--results", type=Path, default=Path("build/lowering_models.json"))
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--which", choices=WHICH, action="append")
    parser.add_argument("--child", nargs=2, metavar=("WHICH", "OUT"), help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.child:
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        for entry in fusable_patterns.values():  # Stock exports them anew at each look.
            if entry.get_graphs_fn is not None:
                entry.get_graphs_fn = functools.cache(entry.get_graphs_fn)
        which, out = options.child
        lower(options.names[0], which, Path(out), options.backend or "", options.keep)
        return 0
    return table(options)


def table(options: argparse.Namespace) -> int:
    """Fill the results, write the page. 1 if a guarded program is not right."""
    results: dict[str, Any] = {"models": {}}
    if options.results.exists():
        results = json.loads(options.results.read_text())
    results["versions"] = {name: version(name) for name in PACKAGES}
    if options.backend:
        results["device"] = f"a stock Vulkan delegate, {options.device or 'on this machine'}"
    for folder in (options.results.parent, options.keep):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or [n for n in zoo.MODELS if n not in results["models"]]:
        made = results["models"].get(name, {})
        made |= {which: in_child(name, which, options) for which in options.which or WHICH}
        results["models"][name] = made
        options.results.write_text(json.dumps(results, indent=1))
        print(_row(name, made), flush=True)
    options.page.write_text(page(results))
    said = [_outcome(made["guarded"]) for made in results["models"].values()]
    return int(any(not words.startswith(("right", "not lowered")) for words in said))


if __name__ == "__main__":
    sys.exit(main())
