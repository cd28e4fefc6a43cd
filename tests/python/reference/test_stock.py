# SPDX-License-Identifier: Apache-2.0
"""Stock's rules: it aborts with the finding's code, or computes the wrong value that stock does.

The wrong values are written down here from what the shaders read, and were measured on ET-VK.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from etvk_guard import reference
from models import MODELS, Model

NAN = math.nan
EPS = 1e-6
# No texture may be larger, so that tensors lie in buffers.
BUFFERS = {"texture_limits": (1, 1, 1)}


def rand(*shape: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.rand(*shape, generator=generator) * 2 - 1


def rms(x: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS)


class Times(nn.Module):
    """norm(x) * weight, the weight a parameter or a number."""

    def __init__(self, weight: Tensor | float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight) if isinstance(weight, Tensor) else weight

    def forward(self, x: Tensor) -> Tensor:
        return rms(x) * self.weight


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


# ------------------------------------------------------------------------- the table of norms


def eager(model: Model) -> list[Tensor]:
    with torch.no_grad():
        result = model.make().eval()(*model.inputs())
    return [result] if isinstance(result, Tensor) else list(result)


@pytest.mark.parametrize("name", MODELS)
def test_stock_does_what_the_table_says(name: str, stock: Any, close: Any) -> None:
    model, path = MODELS[name], stock(name)
    if model.stock == "abort":
        with pytest.raises(reference.StockAbortError) as caught:
            reference.run(path, model.inputs())
        assert caught.value.code in model.codes
        assert caught.value.where.delegate == 0
        return
    results = reference.run(path, model.inputs())
    for result, wanted in zip(results, eager(model), strict=True):
        if model.stock == "right":
            close(result, wanted, model.tolerance)
        else:
            error = (result.double() - wanted.double()).abs().max()
            assert not error <= 0.1 * wanted.abs().max()  # NaN counts as wrong


@pytest.mark.parametrize("name", MODELS)
def test_the_ideal_contract_gives_eagers_values(name: str, stock: Any, close: Any) -> None:
    model = MODELS[name]
    results = reference.run(stock(name), model.inputs(), contract="ideal")
    for result, wanted in zip(results, eager(model), strict=True):
        close(result, wanted, model.tolerance)


# ------------------------------------------------------------------------- silent wrong values


@dataclass(frozen=True)
class Silent:
    """norm(x) * weight, and the row that the shader reads of the weight."""

    weight: Tensor | float
    shape: tuple[int, ...]
    texture: Callable[[Tensor], Tensor]
    buffer: Callable[[Tensor], Tensor]


def first(width: int, past_end: float) -> Callable[[Tensor], Tensor]:
    """The first elements of the memory, and `past_end` after it."""

    def read(weight: Tensor) -> Tensor:
        flat = weight.flatten()[:width]
        return torch.cat([flat, torch.full((width - flat.numel(),), past_end)])

    return read


def first_row(width: int) -> Callable[[Tensor], Tensor]:
    """The first row of the innermost dims, and zeros after it."""
    return lambda weight: first(width, 0.0)(weight.reshape(-1, weight.shape[-1])[0])


SILENT = {
    "rows": Silent(rand(5, 8), (2, 5, 8), lambda w: w[0], lambda w: w[0]),
    "batches": Silent(rand(2, 1, 8), (2, 5, 8), lambda w: w[0, 0], lambda w: w[0, 0]),
    "full": Silent(rand(2, 5, 8), (2, 5, 8), lambda w: w[0, 0], lambda w: w[0, 0]),
    "odd width": Silent(rand(5, 7), (2, 5, 7), lambda w: w[0], lambda w: w[0]),
    "columns": Silent(rand(5, 1), (2, 5, 8), first_row(8), first(8, NAN)),
    "one": Silent(rand(1), (2, 5, 8), first_row(8), first(8, NAN)),
    "scalar": Silent(0.5, (2, 5, 8), lambda w: first(8, 0.0)(w), first(8, NAN)),
}


@pytest.mark.parametrize("storage", ["texture", "buffer"])
@pytest.mark.parametrize("precision", ["float", "half"])
@pytest.mark.parametrize("name", SILENT)
def test_constant_of_another_shape(
    name: str, precision: str, storage: str, lower: Any, close: Any
) -> None:
    case, x = SILENT[name], rand(*SILENT[name].shape, seed=4)
    options = {**(BUFFERS if storage == "buffer" else {}), "force_fp16": precision == "half"}
    file = lower(f"{name} {precision} {storage}", Times(case.weight), (x,), options)
    weight = torch.as_tensor(case.weight).detach()
    read = (case.buffer if storage == "buffer" else case.texture)(weight)
    tolerance = 2e-3 if precision == "half" else 1e-5
    (result,) = reference.run(file, [x])
    wanted = rms(x) * read
    assert torch.equal(result.isnan(), wanted.isnan())
    close(result.nan_to_num(), wanted.nan_to_num(), tolerance)
    (ideal,) = reference.run(file, [x], contract="ideal")
    close(ideal, rms(x) * weight, tolerance)


UP = {
    "rank": (rand(3, 5, 8), (5, 8)),
    "batch": (rand(2, 1, 8), (1, 5, 8)),
    "rows": (rand(4, 8), (3, 1, 8)),
    "width": (rand(8), (5, 1)),
}


@pytest.mark.parametrize("name", UP)
def test_result_larger_than_the_input_in_a_buffer(name: str, lower: Any, close: Any) -> None:
    weight, shape = UP[name]
    x = rand(*shape, seed=4)
    file = lower(f"up {name} buffer", Times(weight), (x,), BUFFERS)
    (result,) = reference.run(file, [x])
    written = (rms(x) * first(shape[-1], NAN)(weight)).flatten()
    assert result.shape == (rms(x) * weight).shape
    close(result.flatten()[: x.numel()], written, 1e-5)
    assert result.flatten()[x.numel() :].isnan().all()


@pytest.mark.parametrize("name", UP)
def test_result_larger_than_the_input_in_a_texture(name: str, lower: Any, close: Any) -> None:
    weight, shape = UP[name]
    x = rand(*shape, seed=4)
    file = lower(f"up {name} texture", Times(weight), (x,))
    (result,) = reference.run(file, [x])
    wanted = torch.full((rms(x) * weight).shape, NAN)
    written = rms(x) * first_row(shape[-1])(weight)
    # Rows keep their place (y, z) in the texture; x has no more rows in y than the result here.
    padded = written.reshape(-1, *written.shape[-2:])
    wanted.reshape(-1, *wanted.shape[-2:])[
        : padded.shape[0], : padded.shape[1], : padded.shape[2]
    ] = padded
    assert torch.equal(result.isnan(), wanted.isnan())
    close(result.nan_to_num(), wanted.nan_to_num(), 1e-5)


# ------------------------------------------------------------------------- other shaders


def test_gelu_is_always_the_tanh_form(lower: Any, close: Any) -> None:
    x = rand(3, 8) * 4
    file = lower("gelu", Function(F.gelu), (x,))
    close(reference.run(file, [x])[0], F.gelu(x, approximate="tanh"), 1e-5)
    close(reference.run(file, [x], contract="ideal")[0], F.gelu(x), 1e-5)


def test_power_of_a_base_that_is_not_positive(lower: Any, close: Any) -> None:
    x = torch.tensor([[0.0, -2.0, 3.0, -1.5]])
    file = lower("power", Function(lambda x: (x.pow(-1.0), x.pow(0.5))), (x,))
    stock = reference.run(file, [x])
    close(stock[0], torch.tensor([[0.0, 0.5, 1 / 3, 1 / 1.5]]), 1e-5)
    close(stock[1], x.abs().sqrt(), 1e-5)
    ideal = reference.run(file, [x], contract="ideal")
    close(ideal[0], x.pow(-1.0), 1e-5)
    assert ideal[1].isnan().tolist() == [[False, True, False, True]]


def test_rope_tables_are_taken_for_two_equal_halves(lower: Any, close: Any) -> None:
    q, k, cos, sin = rand(1, 6, 4, 8), rand(1, 6, 2, 8), rand(6, 8), rand(6, 8, seed=2)
    turn = torch.ops.et_vk.apply_rotary_emb_hf
    file = lower("rope", Function(lambda q, k, c, s: turn(q, k, c, s, 0)), (q, k, cos, sin))
    halves = [table[:, :4].repeat(1, 2) for table in (cos, sin)]
    for result, wanted in zip(
        reference.run(file, [q, k, cos, sin]), turn(q, k, *halves, 0), strict=True
    ):
        close(result, wanted, 1e-5)
    ideal = reference.run(file, [q, k, cos, sin], contract="ideal")
    for result, wanted in zip(ideal, turn(q, k, cos, sin, 0), strict=True):
        close(result, wanted, 1e-5)


def test_squares_in_half_overflow(lower: Any, close: Any) -> None:
    x = torch.tensor([[100.0, 255.0, 300.0, -1000.0]]).half()
    file = lower("squares", Function(lambda x: (x * x, torch.rsqrt((x * x).mean(-1)))), (x,))
    squares, inverse = reference.run(file, [x])
    assert squares.tolist() == [[10000.0, 65024.0, math.inf, math.inf]]
    assert inverse.tolist() == [0.0]


def test_norm_kernels_keep_large_half_values(lower: Any, close: Any) -> None:
    x = (rand(2, 64) * 500).half()
    network = Times(rand(64).half())
    file = lower("large half", network, (x,))
    wanted = (rms(x.float()) * network.weight.float()).half().detach()
    close(reference.run(file, [x])[0], wanted, 2e-3)


def test_layer_norm_in_a_half_buffer_overflows(lower: Any, close: Any) -> None:
    # The shader squares deviations in half: above 255 they are infinite, and rstd is 0.
    x = torch.linspace(-600, 600, 64)[None].half()
    network = nn.LayerNorm(64).half()
    network.bias.data = rand(64).half()
    file = lower("layer norm half", network, (x,), BUFFERS)
    assert torch.equal(reference.run(file, [x])[0], network.bias.detach()[None])
    with torch.no_grad():
        close(reference.run(file, [x], contract="ideal")[0], network(x), 2e-3)


# ------------------------------------------------------------------------- other aborts

X, W, V = rand(2, 5, 8), rand(8, 8), rand(8)
IMAGE, KERNEL = rand(1, 4, 6, 6), rand(4, 4, 3, 3)
IDS = torch.tensor([[1, 4, 2]])

ABORTS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], str]] = {
    "linear weight": (lambda x, w: F.linear(x, w * 2), (X, W), "EG201"),
    "linear bias": (lambda x, b: F.linear(x, torch.ones(8, 8), b * 2), (X, V), "EG201"),
    "convolution": (lambda x, w: F.conv2d(x, w * 2), (IMAGE, KERNEL), "EG201"),
    "embedding": (lambda w, i: F.embedding(i, w * 2), (W, IDS), "EG201"),
    "group norm": (lambda x: F.group_norm(x, 2), (IMAGE,), "EG202"),
    "layer norm": (lambda x: F.layer_norm(x, (8,)), (X,), "EG103"),
    "missing op": (F.scaled_dot_product_attention, (X, X, X), "EG303"),
    "pooling": (lambda x: F.max_pool2d(x, 2), (IMAGE,), "EG211"),
}


@pytest.mark.parametrize("name", ABORTS)
def test_stock_aborts(name: str, lower: Any, close: Any) -> None:
    function, inputs, code = ABORTS[name]
    file = lower(name, Function(function), inputs)
    with pytest.raises(reference.StockAbortError) as caught:
        reference.run(file, inputs)
    assert caught.value.code == code
    assert caught.value.where.op
    close(reference.run(file, inputs, contract="ideal")[0], function(*inputs), 1e-5)


def test_abort_comes_with_the_load_and_names_the_argument(stock: Any) -> None:
    with pytest.raises(reference.StockAbortError) as caught:
        reference.load(stock("scale"))
    where = caught.value.where
    assert (where.method, where.op, where.argument) == (
        "forward",
        "et_vk.rms_norm.default",
        "weight",
    )
    reference.load(stock("scale"), contract="ideal")
