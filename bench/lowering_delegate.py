# SPDX-License-Identifier: Apache-2.0
"""Runs every case of the lowering tests on a real delegate, lowered by stock and under guard.

    python bench/lowering_delegate.py --backend libvulkan_backend.so [--stock] [CASE...]

Prints a line for each case: what the delegate does with stock's program (with --stock), and the
guarded program's largest error relative to eager's largest value. Exits with 1 if a guarded program
fails, or is off by more than the case allows. `VK_ICD_FILENAMES` picks the Vulkan driver.
"""

from __future__ import annotations

import argparse
import copy
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python" / "lowering"))

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower
from lowering_cases import Case
from norm_cases import NORM_CASES, WRITTEN
from op_cases import OP_CASES

from etvk_guard import runtime
from etvk_guard.lowering import GuardedVulkanPartitioner


def lower(case: Case, module: torch.nn.Module, inputs: Any, partitioner: Any) -> tuple[bytes, int]:
    """The program, and how many delegates it has."""
    program = torch.export.export(module, inputs, dynamic_shapes=case.dynamic)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner])
    names = [name for name, _ in edge.exported_program().graph_module.named_children()]
    return bytes(edge.to_executorch().buffer), sum(n.startswith("lowered_module") for n in names)


def error(data: bytes, inputs: Any, expected: list[torch.Tensor]) -> float:
    """The largest error, relative to the largest value; runs without any guard at load."""
    outputs = runtime.load(data, guard="off").forward(*inputs)
    errors = [
        float((got.double() - want.double()).abs().max() / want.double().abs().max())
        for got, want in zip(outputs, expected, strict=True)
    ]
    return max(errors)


def outcome(case: Case, partitioner: Any) -> tuple[str, bool]:
    """What became of a case, in words, and whether it is right."""
    module, inputs = case.make()
    module = module.eval()
    with torch.no_grad():
        value = copy.deepcopy(module)(*inputs)
    expected = list(value) if isinstance(value, (list, tuple)) else [value]
    try:
        data, count = lower(case, module, inputs, partitioner)
    except Exception as failure:
        return f"not lowered ({type(failure).__name__})", False
    try:
        off = error(data, inputs, expected)
    except Exception:
        return f"aborts, {count} delegates", False
    right = off <= case.tolerance
    return f"{'right' if right else 'WRONG'} {off:.1e}, {count} delegates", right


def main() -> int:
    """Run, print, and say whether every guarded program is right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    status = runtime.enable_vulkan(options.backend)
    if not status.available:
        parser.error("; ".join(status.messages))
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)

    good, total = 0, 0
    for case in (*NORM_CASES, WRITTEN, *OP_CASES):
        if options.cases and case.name not in options.cases:
            continue
        stock = f"stock {outcome(case, VulkanPartitioner())[0]:36}" if options.stock else ""
        words, right = outcome(case, GuardedVulkanPartitioner())
        print(f"{case.name:32} {stock} guarded {words}", flush=True)
        good, total = good + right, total + 1
    print(f"{good} of {total} guarded programs are right")
    return 0 if good == total else 1


if __name__ == "__main__":
    sys.exit(main())
