# SPDX-License-Identifier: Apache-2.0
"""What the guard adds to the time of lowering a 28-layer model.

    python bench/lowering.py [--layers 28] [--runs 3]

Both partitioners lower the same exported program, `to_edge_transform_and_lower` and
`to_executorch` included, in turns and in one process. Times are CPU seconds of this process; the
smallest of the runs counts. Exits with 1 if the guarded time is over 1.05 times stock's.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch import Tensor, nn
from torch.nn import functional

from etvk_guard.lowering import Decision, GuardedVulkanPartitioner

LIMIT = 1.05


class Norm(nn.Module):
    """An RMS norm with a weight that starts from zero, as Gemma has it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1.0 + self.weight)


class Layer(nn.Module):
    """A decoder layer with norms before attention and feed-forward, and of queries and keys."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = Norm(size), Norm(size)
        self.of_q, self.of_k = Norm(size // heads), Norm(size // heads)
        self.q, self.k, self.v, self.o = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.up, self.gate = (nn.Linear(size, 2 * size, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * size, size, bias=False)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        h = self.before(x)
        q, k = self.of_q(self._split(self.q(h))), self.of_k(self._split(self.k(h)))
        scores = torch.softmax(q @ k.transpose(-1, -2) + mask, -1)
        h = (scores @ self._split(self.v(h))).transpose(1, 2).reshape(x.shape)
        x = x + self.o(h)
        h = self.after(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    """`layers` decoder layers."""

    def __init__(self, layers: int, size: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(size, heads) for _ in range(layers))
        self.last = Norm(size)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.last(x)


def lower(program: Any, make: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one lowering, and the partitioner."""
    partitioner = make()
    started = time.process_time()
    to_edge_transform_and_lower(program, partitioner=[partitioner]).to_executorch()
    return time.process_time() - started, partitioner


def main() -> int:
    """Measure, print, and say whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)

    model = Model(options.layers).eval()
    program = torch.export.export(model, (torch.randn(1, 8, 64), torch.zeros(8, 8)))
    times: dict[str, list[float]] = {"stock": [], "guarded": []}
    makers = {"stock": VulkanPartitioner, "guarded": GuardedVulkanPartitioner}
    for run in range(options.runs):
        for name, make in makers.items():
            seconds, partitioner = lower(program, make)
            times[name].append(seconds)
            print(f"run {run}: {name:8} {seconds:7.2f} s", flush=True)
    norms = partitioner.report.count(Decision.EVALUATED)
    ratio = min(times["guarded"]) / min(times["stock"])
    first = times["guarded"][0] / times["stock"][0]
    print(f"{options.layers} layers, {norms} norms evaluated and folded by the guard")
    print(f"guarded / stock: {ratio:.3f} (first lowering in the process: {first:.3f})")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
