# SPDX-License-Identifier: Apache-2.0
"""Programs that keep constants outside, in a `.ptd` file."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from etvk_guard import check, reference, repair
from norms import OnePlus, rand


class OutsideWeight(nn.Module):
    """A norm that stock breaks, plus what the CPU makes of a weight outside the program."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = OnePlus(64)
        self.w = nn.Parameter(rand(8, 64, seed=9))

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) + torch.cumsum(self.w, -1)


def lower(module: nn.Module, x: Tensor) -> tuple[bytes, list[bytes]]:
    """The program, and the data files beside it."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program = torch.export.export(module.eval(), (x,))
        lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner()])
        made = lowered.to_executorch(ExecutorchBackendConfig(external_constants=True))
        return bytes(made.buffer), [bytes(data) for data in made._tensor_data.values()]


def test_constants_outside_the_program(tmp_path: Path) -> None:
    module, x = OutsideWeight(), rand(2, 8, 64)
    program, (outside,) = lower(module, x)
    weight = module.w.detach().numpy().tobytes()
    assert weight in outside
    assert weight not in program
    assert [finding.code for finding in check(program).findings] == ["EG101"]
    result = repair(program, tmp_path / "fixed.pte")
    assert result.complete
    assert check(tmp_path / "fixed.pte").clean
    with torch.no_grad():
        expected = module(x)
    (got,) = reference.run(tmp_path / "fixed.pte", [x], data={"w": weight})
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
