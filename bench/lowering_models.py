# SPDX-License-Identifier: Apache-2.0
"""Lowers the models of lowering_zoo.py with stock and under guard, and writes docs/models.md.

    python bench/lowering_models.py [--backend libvulkan_backend.so] [--results FILE] [NAME...]

Each program is run in the reference interpreter under stock rules and, with --backend, on that
Vulkan delegate (`VK_ICD_FILENAMES` picks the driver). Results are kept in FILE (JSON), model by
model, and the page is written from all that are there: a run can be stopped and taken up again.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower

import etvk_guard
import lowering_zoo as zoo
from etvk_guard import reference, runtime
from etvk_guard.lowering import Decision, GuardedVulkanPartitioner, LoweringReport

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
TOLERANCE = 1e-4  # relative to the largest value; a model is hundreds of float32 ops
PACKAGES = ("executorch", "torch", "transformers", "diffusers")
NORM_RULES = ("rms_norm", "layer_norm")


def _error(outputs: list[Any], expected: torch.Tensor) -> float:
    scale = max(float(expected.double().abs().max()), 1e-9)
    return float((outputs[0].double() - expected.double()).abs().max()) / scale


def _run(run: Any, expected: torch.Tensor) -> str:
    """What a runtime does with a program, in words."""
    try:
        error = _error(run(), expected)
    except Exception as failure:
        return f"aborts: {str(failure).splitlines()[0][:160]}"
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


def lower(name: str, guarded: bool, delegate: bool) -> dict[str, Any]:
    """One lowering of one model: what came out, and what runtimes make of it."""
    module, inputs = zoo.make(name)
    partitioner = GuardedVulkanPartitioner() if guarded else VulkanPartitioner()
    try:
        with torch.no_grad():
            expected = module(*inputs)
            program = torch.export.export(module, inputs)
        edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
        data = bytes(edge.to_executorch().buffer)
    except Exception as failure:
        lines = str(failure).strip().splitlines() or [""]
        return {"failed": f"{type(failure).__name__}: {lines[0][:160]}"}
    method = etvk_guard.open_program(data).methods[0]
    ops = Counter(op.name for d in method.delegates if d.graph for op in d.graph.ops)
    made: dict[str, Any] = {
        "delegates": len(method.delegates),
        "ops": sum(ops.values()),
        "fused_norms": ops["et_vk.rms_norm.default"] + ops["aten.native_layer_norm.default"],
        "cpu": dict(Counter(operator for operator, _ in method.operators)),
        "findings": dict(Counter(f.code for f in etvk_guard.check(data).findings)),
        "reference": _run(lambda: reference.run(data, inputs, contract="stock"), expected),
    }
    if delegate:
        made["delegate"] = _run(lambda: runtime.load(data, guard="off").forward(*inputs), expected)
    if guarded:
        report = partitioner.report
        made["norms"] = _norms(report)
        left = [e for e in report if e.decision in (Decision.CPU, Decision.UNFUSED)]
        made["left"] = [f"{e.form}: {e.reason}" for e in left]
        made["other"] = dict(
            Counter(e.rule for e in report if e.rule not in (*NORM_RULES, "constant_scalar"))
        )
    return made


def _outcome(result: dict[str, Any]) -> str:
    if "failed" in result:
        return "not lowered"
    said = str(result.get("delegate", result["reference"]))
    return said.split(":")[0]


def _cell(result: dict[str, Any]) -> str:
    """Delegates and ops on the CPU, of one lowering."""
    if "failed" in result:
        return "-"
    cpu = ", ".join(sorted(op.removeprefix("aten::") for op in result["cpu"])) or "none"
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
    cells = [name, _outcome(stock), _cell(stock), _outcome(guarded), _cell(guarded), about]
    return "| " + " | ".join(cells) + " |"


def _notes(name: str, result: dict[str, Any]) -> list[str]:
    lines = []
    for which in ("stock", "guarded"):
        made = result[which]
        said = made.get("failed") or str(made.get("delegate", made.get("reference", "")))
        if "failed" in made or said.startswith(("aborts", "wrong")):
            lines.append(f"- {name}, {which}: {said}")
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
    head = "| model | stock | delegates, stock | guarded | delegates, guarded | norms, ops each |"
    return "\n".join(
        [
            "# Models",
            "",
            "Made by `bench/lowering_models.py`; do not edit. Tiny configs, random weights,",
            f"float32, lowered with {versions}.",
            f"Run on {where}: the error to eager is relative to the largest value.",
            'Norms are what the guard rewrote; "ops each" counts the ops of a norm and of what',
            "multiplies it, as exported and after.",
            "",
            head,
            "| --- | --- | --- | --- | --- | --- |",
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
    parser.add_argument("--results", type=Path, default=Path("lowering_models.json"))
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    delegate = bool(options.backend) and runtime.enable_vulkan(options.backend).available

    results: dict[str, Any] = {"models": {}}
    if options.results.exists():
        results = json.loads(options.results.read_text())
    results["versions"] = {name: version(name) for name in PACKAGES}
    if delegate:
        results["device"] = f"a stock Vulkan delegate, {options.device or 'on this machine'}"
    for name in options.names or [n for n in zoo.MODELS if n not in results["models"]]:
        made = {
            "stock": lower(name, guarded=False, delegate=delegate),
            "guarded": lower(name, guarded=True, delegate=delegate),
        }
        results["models"][name] = made
        options.results.write_text(json.dumps(results, indent=1))
        print(_row(name, made), flush=True)
    options.page.write_text(page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
