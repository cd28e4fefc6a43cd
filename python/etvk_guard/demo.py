# SPDX-License-Identifier: Apache-2.0
"""The main job on real files: `python -m etvk_guard.demo [FOLDER]` (or `make demo`).

Exports small models with the stock `VulkanPartitioner`, checks, repairs and re-checks each file,
runs original and repaired in the reference interpreter under stock rules, and prints one table. The
models are the three of pytorch/executorch issue 22773, a Gemma-style norm in half, a DiT-style
block and a gated norm. Needs the extra `lowering` (torch and executorch).
"""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table

import etvk_guard
from etvk_guard import reference

D = 64
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3}


def rms(x: torch.Tensor) -> torch.Tensor:
    """Root-mean-square norm over the last dim, as Llama writes it (float32 inside)."""
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class ParameterNorm(torch.nn.Module):
    """`norm(x) * w`."""

    def __init__(self) -> None:
        """Draw the weight."""
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Norm of `x [B, T, D]`."""
        return rms(x) * self.weight


class GemmaNorm(ParameterNorm):
    """`norm(x) * (1.0 + w)`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Norm of `x [B, T, D]`."""
        return rms(x) * (1.0 + self.weight)


class HalfGemmaNorm(ParameterNorm):
    """`norm(x) * (1.0 + w)` in half throughout: without casts stock fuses it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Norm of `x [B, T, D]`, half."""
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return y * (1.0 + self.weight)


class AdaptiveNorm(torch.nn.Module):
    """`norm(x) * (1 + scale)`."""

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Norm of `x [B, T, D]`, scaled by a run-time `scale [B, 1, D]`."""
        return rms(x) * (1 + scale)


class DiTBlock(torch.nn.Module):
    """`layer_norm(x) * (1 + scale) + shift`, with no affine in the norm."""

    def __init__(self) -> None:
        """Draw the modulation."""
        super().__init__()
        self.modulation = torch.nn.Linear(D, 2 * D)
        self.out = torch.nn.Linear(D, D)

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        """Modulated block over `x [B, T, D]`, with `condition [B, D]`."""
        scale, shift = self.modulation(F.silu(condition)).unsqueeze(1).chunk(2, dim=-1)
        y = F.layer_norm(x, (D,)) * (1 + scale) + shift
        return cast(torch.Tensor, x + self.out(y))


class GatedNorm(torch.nn.Module):
    """`norm(x) * silu(z)`."""

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """Gated norm of `x [B, T, D]`, gate `z [B, T, D]`."""
        return rms(x) * F.silu(z)


@dataclass(frozen=True)
class Case:
    """One model of the demo, with its inputs."""

    name: str
    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]


def cases() -> list[Case]:
    """The demo's models, with weights and inputs drawn from a fixed seed."""
    torch.manual_seed(0)
    x = torch.randn(2, 8, D)
    return [
        Case("norm(x) * w", ParameterNorm(), (x,)),
        Case("norm(x) * (1.0 + w)", GemmaNorm(), (x,)),
        Case("norm(x) * (1 + scale)", AdaptiveNorm(), (x, torch.randn(2, 1, D))),
        Case("Gemma norm, half", HalfGemmaNorm().half(), (x.half(),)),
        Case("DiT block", DiTBlock(), (x, torch.randn(2, D))),
        Case("norm(x) * silu(z)", GatedNorm(), (x, torch.randn(2, 8, D))),
    ]


def export(case: Case, path: Path) -> None:
    """Write `case` to `path` as stock executorch lowers it."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import to_edge_transform_and_lower

    program = torch.export.export(case.module.eval(), case.inputs)
    edge = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner()])
    path.write_bytes(edge.to_executorch().buffer)


def error_to_eager(path: Path, case: Case) -> float:
    """Largest error relative to the largest value of eager's result, under stock's rules."""
    want = case.module(*case.inputs).float()
    got = reference.run(path, list(case.inputs), contract="stock")[0].float()
    return float((got - want).abs().max() / want.abs().max())


def outcome(path: Path, case: Case) -> tuple[str, bool]:
    """What stock does with the file, in words, and whether that is eager's result."""
    try:
        error = error_to_eager(path, case)
    except etvk_guard.EtvkGuardError as stop:
        return f"aborts at load: {stop.name}", False
    right = error <= TOLERANCE[case.inputs[0].dtype]
    return f"{'right' if right else 'WRONG'}, max error {error:.1e}", right


@dataclass(frozen=True)
class Row:
    """One line of the demo's table."""

    name: str
    found: str
    before: str
    after: str
    right: bool


def run_case(case: Case, folder: Path) -> Row:
    """Export, check, repair, re-check and run one model."""
    stem = "".join(c if c.isalnum() else "_" for c in case.name).strip("_")
    source, fixed = folder / f"{stem}.pte", folder / f"{stem}.fixed.pte"
    export(case, source)
    found = sorted({f"{f.code} {f.name}" for f in etvk_guard.check(source).findings})
    etvk_guard.repair(source, fixed)
    clean = etvk_guard.check(fixed).clean
    after, right = outcome(fixed, case)
    if not clean:
        after = "still faulty"
    before, _ = outcome(source, case)
    return Row(case.name, ", ".join(found) or "clean", before, after, right and clean)


def table(rows: list[Row]) -> Table:
    """The demo's table."""
    view = Table(title="Stock ET-VK on files exported by stock executorch")
    for column in ("model", "check finds", "stock does", "after repair, stock does"):
        view.add_column(column, overflow="fold")
    for row in rows:
        view.add_row(row.name, row.found, row.before, row.after)
    return view


def quietly(action: Callable[[], list[Row]]) -> list[Row]:
    """Run `action` without the exporter's log and warnings."""
    logging.disable(logging.INFO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return action()


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; 0 when every repaired file gives eager's result under stock rules."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(arguments[0]) if arguments else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = quietly(lambda: [run_case(case, folder) for case in cases()])
        console = Console()
        console.print(table(rows))
        if arguments:
            console.print(f"The files are in {folder}: try `etvk-guard check {folder}`.")
    return 0 if all(row.right for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
