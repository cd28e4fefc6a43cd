# SPDX-License-Identifier: Apache-2.0
"""Each family of ops: small modules, lowered by the stock partitioner, against eager.

Tolerances are relative to the largest value: 1e-5 in float32, 2e-3 where a delegate uses half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchao.quantization import (
    Int8DynamicActivationIntxWeightConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerGroup

from etvk_guard import open_program, reference

FLOAT, HALF = 1e-5, 2e-3

# No texture may be larger, so that tensors lie in buffers.
BUFFERS = {"texture_limits": (1, 1, 1)}


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


class AddConstant(nn.Module):
    """x + c, c a parameter of any shape."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.constant = nn.Parameter(rand(*shape))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.constant


class BatchMatmul(nn.Module):
    """x @ w, w a parameter."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(*shape))

    def forward(self, x: Tensor) -> Tensor:
        return torch.matmul(x, self.weight)


class Norm(nn.Module):
    """An RMS norm as models write it."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(rand(width) + 1)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def quantized(network: nn.Module, config: Any) -> nn.Module:
    quantize_(network, config, lambda module, name: isinstance(module, type(network)))
    return network


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) * 0.35, -1) @ v


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-2, -1) * 0.35 + mask, -1) @ v


def rand(*shape: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.rand(*shape, generator=generator) * 2 - 1


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(5)
    return make()


@dataclass(frozen=True)
class Case:
    """A module and its inputs. `ops`: names that the delegates must hold."""

    make: Callable[[], nn.Module]
    inputs: tuple[Tensor, ...]
    ops: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    tolerance: float = FLOAT


def fn(function: Callable[..., Any], *inputs: Tensor, ops: str = "", **more: Any) -> Case:
    return Case(lambda: Function(function), inputs, tuple(ops.split()), **more)


def module(make: Callable[[], nn.Module], *inputs: Tensor, ops: str = "", **more: Any) -> Case:
    return Case(make, inputs, tuple(ops.split()), **more)


A, B, POSITIVE = rand(3, 5, 8), rand(3, 5, 8, seed=9), rand(3, 5, 8).abs() + 0.1
IMAGE = rand(1, 6, 8, 10)
QKV = rand(1, 4, 6, 8), rand(1, 4, 7, 8), rand(1, 4, 7, 8, seed=2)
IDS = torch.tensor([[1, 4, 2], [0, 6, 3]])
MASK = torch.zeros(1, 1, 6, 7).masked_fill(rand(1, 1, 6, 7) > 0.5, -1e4)

CASES: dict[str, Case] = {
    # Element-wise.
    "unary": fn(
        lambda x: (
            torch.abs(x) + torch.cos(x) + torch.exp(x) + torch.sin(x) + torch.tanh(x) - torch.neg(x)
        ),
        A,
        ops="aten.abs.default aten.cos.default aten.exp.default aten.sin.default aten.neg.default",
    ),
    "roots": fn(
        lambda x: torch.sqrt(x) + torch.rsqrt(x) + torch.log10(x) + torch.round(x * 3),
        POSITIVE,
        ops="aten.sqrt.default aten.rsqrt.default aten.log10.default aten.round.default",
    ),
    "activations": fn(
        lambda x: (
            F.relu(x)
            + torch.sigmoid(x)
            + F.hardswish(x)
            + F.leaky_relu(x, 0.2)
            + F.hardtanh(x, -0.3, 0.4)
            + F.hardshrink(x, 0.2)
            + torch.clamp(x, -0.5, 0.25)
        ),
        A,
        ops="aten.relu.default aten.hardswish.default aten.leaky_relu.default aten.clamp.default",
    ),
    "silu": fn(F.silu, A, ops="aten.sigmoid.default aten.mul.Tensor"),
    "gelu tanh": fn(lambda x: F.gelu(x * 3, approximate="tanh"), A, ops="aten.gelu.default"),
    "binary": fn(
        lambda x, y: (x + 2 * y) * x - torch.minimum(x, y) / (y + 3),
        A,
        B,
        ops="aten.add.Tensor aten.mul.Tensor aten.minimum.default aten.div.Tensor",
    ),
    "broadcast": fn(lambda x, y: x * y + y, A, rand(5, 1), ops="aten.mul.Tensor"),
    "scalars": fn(lambda x: (x * 2.5 + 3 - 1.5) / 4, A),
    "subtract scaled": fn(lambda x, y: torch.sub(x, y, alpha=3), A, B, ops="aten.sub.Tensor"),
    "power": fn(
        lambda x, y: x.pow(2) + x.pow(2.5) + x.pow(y),
        POSITIVE,
        B,
        ops="aten.pow.Tensor_Scalar aten.pow.Tensor_Tensor",
    ),
    "square of negative": fn(lambda x: x.pow(2) + x.pow(3), A, ops="aten.pow.Tensor_Scalar"),
    "floor divide": fn(
        lambda x, y: torch.div(x, y, rounding_mode="floor"),
        A * 7,
        POSITIVE,
        ops="aten.div.Tensor_mode",
    ),
    "compare": fn(
        lambda x, y: torch.where(x > y, x, y) + torch.where(x <= 0.25, x * 2, y),
        A,
        B,
        ops="aten.gt.Tensor aten.where.self aten.le.Scalar",
    ),
    "booleans": fn(
        lambda x, y: (x > y) & (x < 0.5) | ~(y >= 0.0), A, B, ops="aten.bitwise_and.Tensor"
    ),
    "constant": module(lambda: AddConstant(5, 8), A, ops="et_vk.prepack.default aten.add.Tensor"),
    "integers": fn(lambda x, y: x + y * 3, IDS, IDS.flip(0), ops="aten.add.Tensor"),
    # Reductions.
    "sum": fn(lambda x: x.sum(-1) + x.sum(-1, keepdim=True)[..., 0], A, ops="aten.sum.dim_IntList"),
    "mean": fn(
        lambda x: x.mean(1, keepdim=True) + x.mean(-1, keepdim=True), A, ops="aten.mean.dim"
    ),
    "extremes": fn(lambda x: x.amax(-1) - x.amin(-1), A, ops="aten.amax.default aten.amin.default"),
    "argmax": fn(
        lambda x: x.argmax(-1),
        A,
        ops="aten.argmax.default",
        options=BUFFERS,
    ),
    "softmax": fn(lambda x: F.softmax(x * 4, -1), A, ops="aten._softmax.default"),
    "log softmax": fn(lambda x: F.log_softmax(x * 4, 1), A, ops="aten._log_softmax.default"),
    # Shapes.
    "view": fn(lambda x: x.reshape(5, 24) * 2, A, ops="aten.view_copy.default"),
    "permute": fn(lambda x: x.permute(2, 0, 1) + 1, A, ops="aten.permute_copy.default"),
    "cat": fn(lambda x, y: torch.cat([x, y, x], 1), A, B, ops="aten.cat.default"),
    "slice": fn(lambda x: x[:, 1:4] * x[:, 0:3], A, ops="aten.slice_copy.Tensor"),
    "select": fn(lambda x: x[:, 2] + x[:, -1], A, ops="aten.select_copy.int"),
    "split": fn(lambda x: (lambda a, b: a * b)(*x.split(4, -1)), A),
    "chunk of three": fn(lambda x: x.chunk(3, 0)[1] + 1, A),
    "expand": fn(lambda x: x.expand(3, 5, 8) * 2, rand(1, 5, 8), ops="aten.expand_copy.default"),
    "repeat": fn(lambda x: x.repeat(2, 1, 3), A, ops="aten.repeat.default"),
    "squeeze": fn(lambda x: (x.unsqueeze(1) * 2).squeeze(1) + x, A),
    "flip": fn(lambda x: x.flip(1) * 2, A, ops="aten.flip.default"),
    "pad": fn(lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), A, ops="aten.constant_pad_nd.default"),
    "full": fn(lambda x: x + torch.full((5, 8), 0.25) * torch.ones(8), A),
    "arange": fn(lambda x: x + torch.arange(0, 8, dtype=torch.float32), A),
    "index select": fn(
        lambda x, i: torch.index_select(x, 0, i),
        A,
        torch.tensor([2, 0], dtype=torch.int64),
        ops="aten.index_select.default",
    ),
    "gather": fn(
        lambda x, i: torch.gather(x, 1, i),
        rand(4, 6),
        IDS.repeat(2, 1) % 6,
        ops="aten.gather.default",
    ),
    "pixel shuffle": fn(
        lambda x: F.pixel_shuffle(x, 2), rand(1, 8, 3, 3), ops="aten.pixel_shuffle.default"
    ),
    "to half": fn(
        lambda x: (x.half() * 2).float(),
        A,
        ops="dim_order_ops._to_dim_order_copy.default",
        tolerance=HALF,
    ),
    # Linear algebra.
    "linear": module(lambda: nn.Linear(8, 6), A, ops="aten.linear.default"),
    "linear without bias": module(lambda: nn.Linear(8, 6, bias=False), A),
    "mm": fn(torch.mm, rand(5, 8), rand(8, 6), ops="aten.mm.default"),
    "mm constant": module(lambda: BatchMatmul(8, 6), rand(5, 8)),
    "bmm": fn(torch.bmm, rand(3, 5, 8), rand(3, 8, 6), ops="aten.bmm.default"),
    "addmm": fn(torch.addmm, rand(5, 6), rand(5, 8), rand(8, 6)),
    "embedding": module(lambda: nn.Embedding(7, 12), IDS, ops="aten.embedding.default"),
    # Convolution and pooling.
    "conv2d": module(
        lambda: nn.Conv2d(6, 4, 3, stride=2, padding=1), IMAGE, ops="aten.convolution.default"
    ),
    "conv2d depthwise": module(lambda: nn.Conv2d(6, 6, 3, padding=1, groups=6), IMAGE),
    "conv2d pointwise": module(lambda: nn.Conv2d(6, 12, 1), IMAGE),
    "conv2d relu": module(
        lambda: nn.Sequential(nn.Conv2d(6, 4, 3), nn.ReLU()),
        IMAGE,
        ops="et_vk.conv_with_clamp.default",
    ),
    "conv transposed": module(lambda: nn.ConvTranspose2d(6, 4, 2, stride=2), IMAGE),
    "conv1d": module(lambda: nn.Conv1d(6, 4, 3), rand(1, 6, 11), ops="aten.convolution.default"),
    "max pool": fn(lambda x: F.max_pool2d(x, 2, 2), IMAGE),
    "average pool": fn(lambda x: F.avg_pool2d(x, 2, 2), IMAGE, ops="aten.avg_pool2d.default"),
    "upsample nearest": fn(
        lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest"),
        IMAGE,
        ops="aten.upsample_nearest2d.vec",
    ),
    "upsample bilinear": fn(
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        IMAGE,
        ops="aten.upsample_bilinear2d.vec",
    ),
    # Norms.
    "rms norm": module(lambda: Norm(8), A, ops="et_vk.rms_norm.default"),
    "rms norm odd width": module(lambda: Norm(7), rand(2, 3, 7), ops="et_vk.rms_norm.default"),
    "rms norm rank 4": module(lambda: Norm(6), rand(2, 3, 4, 6), ops="et_vk.rms_norm.default"),
    "rms norm buffer": module(lambda: Norm(8), A, ops="et_vk.rms_norm.default", options=BUFFERS),
    "layer norm": module(lambda: nn.LayerNorm(8), A, ops="aten.native_layer_norm.default"),
    "layer norm buffer": module(lambda: nn.LayerNorm(8), A, options=BUFFERS),
    "group norm": module(lambda: nn.GroupNorm(2, 6), IMAGE, ops="aten.native_group_norm.default"),
    "batch norm": module(
        lambda: nn.BatchNorm2d(6), IMAGE, ops="aten._native_batch_norm_legit_no_training.default"
    ),
    "conv batch norm": module(lambda: nn.Sequential(nn.Conv2d(6, 4, 3), nn.BatchNorm2d(4)), IMAGE),
    # Attention.
    "attention": fn(attention, *QKV, ops="aten.bmm.default aten._softmax.default"),
    "attention masked": fn(masked_attention, *QKV, MASK),
    "attention fused": fn(
        lambda q, k, v, m: torch.ops.et_vk.sdpa(q, k, v, m, 0.3),
        *QKV,
        MASK,
        ops="et_vk.sdpa.default",
    ),
    "rope": fn(
        lambda q, k, c, s: torch.ops.et_vk.apply_rotary_emb(q, k, c, s),
        rand(1, 6, 4, 8),
        rand(1, 6, 2, 8),
        rand(6, 4),
        rand(6, 4, seed=2),
        ops="et_vk.apply_rotary_emb.default",
    ),
    "rope of halves": fn(
        lambda q, k, c, s: torch.ops.et_vk.apply_rotary_emb_hf(q, k, c, s, 2),
        rand(1, 6, 4, 12),
        rand(1, 6, 2, 12),
        rand(9, 4).repeat(1, 2),
        rand(9, 4, seed=2).repeat(1, 2),
        ops="et_vk.apply_rotary_emb_hf.default",
    ),
    "rope fused": fn(
        lambda x, f: torch.ops.et_vk.apply_rotary_emb_interleaved(x, f),
        rand(2, 6, 8),
        rand(6, 8),
        ops="et_vk.apply_rotary_emb_interleaved.default",
    ),
    # Quantized.
    "linear 4 bit": module(
        lambda: quantized(nn.Linear(64, 24), IntxWeightOnlyConfig(torch.int4, PerGroup(32))),
        rand(5, 64),
        ops="et_vk.linear_q4gsw.default",
    ),
    "linear 4 bit on int8": module(
        lambda: quantized(
            nn.Linear(64, 24), Int8DynamicActivationIntxWeightConfig(torch.int4, PerGroup(32))
        ),
        rand(5, 64),
        ops="torchao.choose_qparams_affine.default et_vk.linear_dq8ca_q4gsw.default",
    ),
    "embedding 4 bit": module(
        lambda: quantized(nn.Embedding(7, 64), IntxWeightOnlyConfig(torch.int4, PerGroup(32))),
        IDS,
        ops="et_vk.embedding_q4gsw.default",
    ),
    # In half.
    "half rms norm": module(
        lambda: Norm(8),
        A,
        options={"force_fp16": True},
        tolerance=HALF,
        ops="et_vk.rms_norm.default",
    ),
    "half layer norm": module(
        lambda: nn.LayerNorm(8), A, options={"force_fp16": True}, tolerance=HALF
    ),
    "half layer norm buffer": module(
        lambda: nn.LayerNorm(8),
        A,
        options={"force_fp16": True, **BUFFERS},
        tolerance=HALF,
    ),
    "half linear": module(
        lambda: nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4)),
        A,
        options={"force_fp16": True},
        tolerance=HALF,
    ),
    "half softmax": fn(
        lambda x: F.softmax(x * 4, -1), A, options={"force_fp16": True}, tolerance=HALF
    ),
    "half inputs": fn(lambda x: F.softmax(x * 2 + 1, -1), A.half(), tolerance=HALF),
}


@pytest.mark.parametrize("contract", ["stock", "ideal"])
@pytest.mark.parametrize("name", CASES)
def test_matches_eager(name: str, contract: str, lowered: Any, close: Any) -> None:
    case, program, expected = lowered(name)
    results = reference.run(program, case.inputs, contract=contract)
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        close(result, wanted, case.tolerance)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.ops])
def test_runs_the_ops_it_is_about(name: str, lowered: Any) -> None:
    case, program, _ = lowered(name)
    delegates = open_program(program).methods[0].delegates
    ops = {op.name for delegate in delegates for op in delegate.graph.ops}
    assert set(case.ops) <= ops


@pytest.fixture(scope="module")
def lowered(lower: Any) -> Callable[[str], tuple[Case, bytes, list[Tensor]]]:
    """A case by name, its program and eager's outputs; each is lowered once."""
    made: dict[str, tuple[Case, bytes, list[Tensor]]] = {}

    def get(name: str) -> tuple[Case, bytes, list[Tensor]]:
        if name not in made:
            case = CASES[name]
            network = seeded(case.make).eval()
            program = lower(name, network, case.inputs, case.options)
            with torch.no_grad():
                outputs = network(*case.inputs)
            made[name] = case, program, list(outputs) if isinstance(outputs, tuple) else [outputs]
        return made[name]

    return get
