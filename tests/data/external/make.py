# SPDX-License-Identifier: Apache-2.0
"""Write outside.pte and outside.ptd: a faulty norm, and a weight outside the program.

    python tests/data/external/make.py      # executorch 1.5.1

The files are kept. The second output, `cumsum(w)`, is computed on the CPU.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

from norms import OnePlus, rand  # noqa: E402


class Outside(nn.Module):
    """Both outputs of `forward`: a norm that stock breaks, and a CPU op on a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = OnePlus(64)
        self.w = nn.Parameter(rand(8, 64, seed=9))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.norm(x), torch.cumsum(self.w, -1)


def main() -> None:
    """Lower it with the stock partitioner, constants outside."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.export.export(Outside().eval(), (rand(2, 8, 64),))
        lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner()])
        made = lowered.to_executorch(ExecutorchBackendConfig(external_constants=True))
    ((_, data),) = made._tensor_data.items()
    (HERE / "outside.pte").write_bytes(made.buffer)
    (HERE / "outside.ptd").write_bytes(bytes(data))


if __name__ == "__main__":
    main()
