# SPDX-License-Identifier: Apache-2.0
"""Time CUDA's fused `rms_norm` and a device copy the way etvk-guard-kernels times its kernels.

GPU time of one norm in a chain of dependent ones, by the difference of a long and a short CUDA
graph, the fastest of many runs. "cold" goes round tensors of 512 MB in all, so that no cache holds
them; otherwise the chain has few tensors.
Prints JSON. Needs a CUDA build of PyTorch and an NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

SHAPES = [
    (1, 4096), (2048, 2048), (8192, 4096), (16384, 4096), (1, 2048), (1, 16384),
    (32, 4096), (128, 1024), (4096, 128), (65535, 64), (512, 8192), (2048, 4095),
    (1, 256), (16, 256),
]  # fmt: skip
COLD_BYTES = 512 << 20
MAX_RING = 66
NEVER_RESIDENT = 256e6


def graph_of(step: Callable[[int], None], length: int) -> torch.cuda.CUDAGraph:
    """A graph of `length` steps."""
    step(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(length):
            step(i)
    return graph


def graph_us(graph: torch.cuda.CUDAGraph, runs: int) -> float:
    """GPU microseconds of the fastest replay."""
    graph.replay()
    best = float("inf")
    for _ in range(runs):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) * 1e3)
    return best


def step_us(step: Callable[[int], None], chain: int, runs: int) -> float:
    """GPU microseconds of one step: the difference of two chains."""
    long_graph, short_graph = graph_of(step, chain), graph_of(step, 1)
    return (graph_us(long_graph, runs) - graph_us(short_graph, runs)) / (chain - 1)


def time_shape(
    rows: int, width: int, dtype: torch.dtype, cold: bool, chain: int, runs: int
) -> dict[str, Any]:
    """One row of the table: norm and copy, microseconds."""
    size = rows * width * dtype.itemsize
    count = min(max(2, -(-COLD_BYTES // size)), MAX_RING) if cold else 2
    ring = [torch.randn(rows, width, device="cuda", dtype=dtype) for _ in range(count)]
    # 1 and -1: with others, a chain of norms soon has nothing but zeros left.
    weight = torch.randn(width, device="cuda", dtype=dtype).sign()
    kept: list[torch.Tensor] = [ring[0]]

    def norm(i: int) -> None:
        # The allocator gives back the memory of the result before last: two tensors in turn.
        kept[0] = F.rms_norm(ring[i % count] if cold else kept[0], (width,), weight, 1e-5)

    def copy(i: int) -> None:
        ring[(i + 1) % count].copy_(ring[i % count])

    return {
        "norm": "rms",
        "dtype": "half" if dtype is torch.float16 else "float",
        "rows": rows,
        "width": width,
        "cold": cold,
        "us": step_us(norm, chain, runs),
        "us_copy": step_us(copy, chain, runs),
    }


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chain", type=int, default=129)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    rows = []
    for dtype in (torch.float32, torch.float16):
        for height, width in SHAPES:
            size = 2.0 * height * width * dtype.itemsize
            for cold in (False, True) if 16e6 < size < NEVER_RESIDENT else (False,):
                rows.append(time_shape(height, width, dtype, cold, options.chain, options.runs))
    report = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "chain": options.chain,
        "runs": options.runs,
        "rows": rows,
    }
    json.dump(report, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
