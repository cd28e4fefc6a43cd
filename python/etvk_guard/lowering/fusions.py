# SPDX-License-Identifier: Apache-2.0
"""What stock's patterns of quantized ops take for granted, asked before stock fuses.

Stock looks for a dequantized weight, and walks from an op's argument back to the first constant
that it meets. What lies between (an adapter that is added, a scale) is lost, and so are the axis of
the scales, zero points, dtype and range of activations, shapes, and a factor of the addition: then
the fused op is silently wrong, aborts, or cannot be lowered. What does not fit is not fused: a
weight is dequantized once, at lowering, and the plain op stays. `docs/fusions.md` has the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from executorch.backends.transforms.utils import create_constant_placeholder
from executorch.backends.vulkan.utils import is_dequant_node
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from etvk_guard.lowering.constants import Constants
from etvk_guard.lowering.graph import (
    arg,
    edge,
    is_cast,
    is_op,
    op_name,
    same_shape,
    shape_of,
    value,
)

__all__ = ["Leaf", "fusion_fits", "own_constants", "symmetric"]

Leaf = Callable[[object], bool]
"""Whether a node is a constant of the program."""

_PER_TENSOR = (
    "quantized_decomposed.quantize_per_tensor.default",
    "quantized_decomposed.dequantize_per_tensor.default",
)
_PER_CHANNEL = "quantized_decomposed.dequantize_per_channel.default"
_AFFINE = "torchao.dequantize_affine.default"
_TURNS = (edge.permute_copy.default, edge.t_copy.default)
_KEEPS = (
    edge.view_copy.default,
    edge.expand_copy.default,
    edge.unsqueeze_copy.default,
    edge.squeeze_copy.dims,
)
_LANES = 4  # Channels that the shaders read at a time.
_LOWEST, _HIGHEST = -128, 127


def fusion_fits(name: str, match: Any, leaf: Leaf) -> bool:
    """Whether stock's op computes what a match of the pattern `name` does, constants' values aside.

    Args:
        name: the pattern's name in `fusable_patterns`; one that is not known here fits.
        match: a `PatternMatch` of stock's detector for it.
        leaf: whether a node is a constant.
    """
    check = _CHECKS.get(name)
    return check is None or check(match, leaf)


def symmetric(match: Any, constants: Constants) -> bool:
    """Whether the zero points of a match's weight are all 0, as stock's ops have it.

    Args:
        match: a match that fits.
        constants: those of the program that it is of; with real weights.
    """
    zeros = getattr(match, "weight_zeros_node", None) or getattr(match, "zero_point_node", None)
    if zeros is None:
        return True
    return not bool(constants.evaluate(zeros).any())


def own_constants(match: Any, constants: Constants, program: ExportedProgram) -> None:
    """Give a match parameters of its own, where others use them or they are none.

    Stock packs and pads them in place, in the program's state.
    """
    for name in ("weight_node", "weight_scales_node", "scales_node", "bias_node"):
        node = getattr(match, name, None)
        if node is None or not constants.leaf(node):
            continue
        stored = constants.target(node) in program.state_dict
        if not stored or not _exclusive(node, match.anchor_node):
            data = constants.evaluate(node).clone()
            setattr(match, name, _parameter(program, data, f"etvk_guard_{node.name}"))


def _parameter(program: ExportedProgram, data: torch.Tensor, name: str) -> Node:
    graph = program.graph_module.graph
    taken = {node.name for node in graph.nodes}
    unique = next(n for n in (f"{name}_{i}" for i in range(len(taken) + 1)) if n not in taken)
    with graph.inserting_before(next(iter(graph.nodes))):
        return cast(
            "Node",
            create_constant_placeholder(
                exp_program=program,
                graph=graph,
                kind=InputKind.PARAMETER,
                name=unique,
                data=data,
            ),
        )


def _exclusive(node: Node, anchor: Node) -> bool:
    """Whether a constant serves one op only, through calls that serve only that."""
    while node is not anchor:
        if len(node.users) != 1:
            return False
        node = next(iter(node.users))
    return True


def _linear_fits(match: Any, leaf: Leaf) -> bool:
    node = match.anchor_node
    place = 2 if is_op(node, edge.addmm.default) else 1
    turned = not is_op(node, edge.linear.default)
    return (
        _reaches(node.args[place], match.dequantize_weight_node, turned)
        and _weight_fits(match, leaf, rank=2, axis=0)
        and _linear_bias_fits(match, leaf)
        and _linear_input_fits(match)
        and (not match.has_output_quantization() or _per_tensor(match.quantize_output_node))
    )


def _reaches(node: Any, source: Node, turned: bool) -> bool:
    """Whether `node` is `source`, or its transpose, through nothing but views and casts."""
    while node is not source:
        if is_op(node, *_TURNS):
            if not _swaps_last(node):
                return False
            turned = not turned
        elif is_op(node, *_KEEPS):
            if (shape_of(node) or ())[-2:] != (shape_of(node.args[0]) or ())[-2:]:
                return False
        elif not is_cast(node):
            return False
        node = node.args[0]
    return not turned


def _swaps_last(node: Any) -> bool:
    rank = len(shape_of(node) or ())
    wanted = [*range(rank - 2), rank - 1, rank - 2]
    order = cast("list[int]", arg(node, 1, "dims", wanted))
    return rank >= 2 and [size % rank for size in order] == wanted


def _weight_fits(match: Any, leaf: Leaf, rank: int, axis: int) -> bool:
    """Whether a weight is int8 of one rank, with a scale for each row or for parts of rows."""
    dequantize, weight = match.dequantize_weight_node, value(match.weight_node)
    first = 2 if op_name(dequantize) == _AFFINE else 1
    parts = [dequantize.args[0], *dequantize.args[first : first + 2]]
    if parts != [match.weight_node, match.weight_scales_node, match.weight_zeros_node]:
        return False
    if not all(map(leaf, parts)):
        return False
    if weight is None or weight.dim() != rank or weight.dtype != torch.int8:
        return False
    if op_name(dequantize) == _PER_CHANNEL:
        return cast("int", dequantize.args[3]) % rank == axis
    # Several scales a row: the op takes rows, and the elements of a group, by fours.
    blocks = dequantize.args[1] if op_name(dequantize) == _AFFINE else [1]
    groups = (shape_of(match.weight_scales_node) or (1,))[-1]
    sizes = (weight.shape[0], weight.shape[1] // int(groups))
    return rank == 2 and blocks[0] == 1 and all(size % _LANES == 0 for size in sizes)


def _linear_bias_fits(match: Any, leaf: Leaf) -> bool:
    node = match.anchor_node
    if is_op(node, edge.addmm.default):
        if arg(node, 3, "beta", 1) != 1 or arg(node, 4, "alpha", 1) != 1:
            return False
        bias = node.args[0]
    elif is_op(node, edge.linear.default):
        bias = arg(node, 2, "bias")
    else:
        bias = None
    return _bias_fits(bias, (shape_of(match.weight_node) or ())[:1], leaf)


def _bias_fits(bias: Any, shape: tuple[Any, ...], leaf: Leaf) -> bool:
    if bias is None:
        return True
    found = value(bias)
    floats = found is not None and found.is_floating_point()
    return bool(floats and leaf(bias) and shape_of(bias) == shape)


def _linear_input_fits(match: Any) -> bool:
    dequantize = match.dequantize_input_node
    if dequantize is None:
        return True
    if match.quantize_input_node is None:
        # Without a quantized result stock's op wants a float input, and is given the int8 one.
        return _per_tensor(dequantize) and match.has_output_quantization()
    # Quantized on the fly: both must have the parameters of one choice, in all of int8.
    kinds = [item for item in match.quantize_input_node.args if not isinstance(item, (Node, list))]
    chosen = {node.args[0] for node in (match.input_scales_node, match.input_zeros_node)}
    return (
        {torch.int8, _LOWEST, _HIGHEST} <= set(kinds)
        and len(chosen) == 1
        and next(iter(chosen)).args[0] is match.pattern_input_node
    )


def _per_tensor(node: Any) -> bool:
    """Whether a call quantizes, or dequantizes, by one scale and zero point in all of int8."""
    if not isinstance(node, Node) or op_name(node) not in _PER_TENSOR:
        return False
    scale, zero, low, high, dtype = node.args[1:6]
    numbers = isinstance(scale, float) and isinstance(zero, int)
    wide = low in (_LOWEST, _LOWEST + 1) and high == _HIGHEST
    return bool(numbers and dtype == torch.int8 and (wide or is_dequant_node(node)))


def _convolution_fits(match: Any, leaf: Leaf) -> bool:
    node, transposed = match.anchor_node, match.transposed
    weight, image = shape_of(match.weight_node), shape_of(node.args[0])
    if not weight or not image or len(weight) != len(image) or len(image) != 4:
        return False
    rows = weight[1] * match.groups if transposed else weight[0]
    return (
        node.args[1] is match.dequantize_weight_node
        and op_name(match.dequantize_weight_node) == _PER_CHANNEL
        and _weight_fits(match, leaf, rank=4, axis=1 if transposed else 0)
        and _groups_fit(weight, image[1], match)
        and _bias_fits(arg(node, 2, "bias"), (rows,), leaf)
        and _per_tensor(match.dequantize_input_node)
        and _per_tensor(match.quantize_output_node)
        and (match.relu_node is None or len(match.relu_node.users) == 1)
    )


def _groups_fit(weight: tuple[Any, ...], channels: Any, match: Any) -> bool:
    groups = match.groups
    if groups == 1:
        return True
    if match.transposed:
        return False  # Scales by channel of a group are read as by channel of the result.
    if groups == weight[0] == channels:
        return bool(weight[0] % _LANES == 0)
    return bool(channels // groups % _LANES == 0 and weight[0] // groups % _LANES == 0)


def _binary_fits(match: Any, leaf: Leaf) -> bool:
    a, b = match.anchor_node.args[:2]
    low = match.quantize_output_node.args[2]
    return (
        arg(match.anchor_node, 2, "alpha", 1) == 1
        and same_shape(a, b)
        and _per_tensor(a)
        and _per_tensor(b)
        and _per_tensor(match.quantize_output_node)
        and (match.relu_node is None or low == _LOWEST)  # Where 0 is the lowest, it clips there.
    )


def _unary_fits(match: Any, leaf: Leaf) -> bool:
    return _per_tensor(match.dequantize_input_node) and _per_tensor(match.quantize_output_node)


def _shuffle_fits(match: Any, leaf: Leaf) -> bool:
    rank = len(shape_of(match.pixel_shuffle_node) or ())
    return bool(match.upscale_factor == 2 and rank == 4 and _unary_fits(match, leaf))


def _embedding_fits(match: Any, leaf: Leaf) -> bool:
    dequantize = match.anchor_node.args[0]
    parts = [dequantize.args[0], dequantize.args[2]]
    return parts == [match.weight_node, match.scales_node] and all(map(leaf, parts))


_CHECKS: dict[str, Callable[[Any, Leaf], bool]] = {
    "quantized_linear": _linear_fits,
    "quantized_convolution": _convolution_fits,
    "quantized_binary": _binary_fits,
    "quantized_unary": _unary_fits,
    "quantized_pixel_shuffle": _shuffle_fits,
    "torchao_quantized_embedding": _embedding_fits,
}
