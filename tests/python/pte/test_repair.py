# SPDX-License-Identifier: Apache-2.0
"""Stock-exported files: what is found in them, and what repair makes of them.

The op lists that are expected are in the table (`models.MODELS`), written down by hand from the
legal forms of a norm. That ExecuTorch's own reader takes the files too is tested here; that the
numbers are right is tested in test_repair_numbers.py.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from etvk_guard import EtvkGuardError, Program, check, open_program, repair
from models import MODELS
from op_models import OP_MODELS

Stock = Callable[[str], Path]
FAULTY = [name for name, model in MODELS.items() if model.codes]
ARGUMENTS = {
    "weight", "bias", "out", "x", "running_mean", "running_var", "groups", "argument 1", "dim",
    "argument 6", "argument 8", "stride", "padding", "self", "rounding_mode", "indices", "input",
    "scale_factors",
}  # fmt: skip
FIXABLE = [name for name in FAULTY if MODELS[name].repaired is not None]


def graphs(program: Program) -> Iterator[Any]:
    for method in program.methods:
        for delegate in method.delegates:
            if delegate.graph is not None:
                yield delegate.graph


def op_lists(path_or_data: Path | bytes) -> tuple[tuple[str, ...], ...]:
    return tuple(delegate.ops for delegate in check(path_or_data).delegates)


@pytest.mark.parametrize("name", MODELS)
def test_check(name: str, stock: Stock) -> None:
    model = MODELS[name]
    report = check(stock(name))
    assert tuple(finding.code for finding in report.findings) == model.codes
    assert op_lists(stock(name)) == model.ops
    assert report.clean == (not model.codes)
    for finding in report.findings:
        assert finding.method in ("forward", *model.methods)
        assert finding.delegate is not None
        assert finding.op_index is not None
        at = [
            d
            for d in report.delegates
            if (d.method, d.delegate) == (finding.method, finding.delegate)
        ]
        assert at[0].ops[finding.op_index] == finding.op
        assert finding.argument in ARGUMENTS
        assert finding.fixable == (model.repaired is not None)
    stocks = {finding.stock for finding in report.findings}
    assert model.stock == ("abort" if "abort" in stocks else "wrong" if stocks else "right")


@pytest.mark.parametrize("name", MODELS)
def test_repair(name: str, stock: Stock, tmp_path: Path) -> None:
    """The expected ops, no finding left, and the same again from itself."""
    model, out = MODELS[name], tmp_path / "out.pte"
    before = stock(name).read_bytes()
    result = repair(stock(name), out)
    assert stock(name).read_bytes() == before
    assert result.path == str(out)
    assert result.changed == (model.repaired is not None)
    assert op_lists(out) == (model.repaired or model.ops)
    if model.repaired is not None:
        assert tuple(finding.code for finding in result.repaired) == model.codes
        assert result.complete
        assert check(out).clean
    else:
        assert tuple(finding.code for finding in result.remaining) == model.codes
        assert out.read_bytes() == before
    again = repair(out, None)
    assert not again.changed
    assert again.data == out.read_bytes() == result.data


@pytest.mark.parametrize("name", FIXABLE)
def test_repair_is_deterministic(name: str, stock: Stock) -> None:
    path = stock(name)
    assert repair(path, None).data == repair(path.read_bytes(), None).data


@pytest.mark.parametrize("name", FIXABLE)
def test_all_else_is_untouched(name: str, stock: Stock) -> None:
    """As ExecuTorch's own reader sees both: only the Vulkan blobs differ."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    before, after = stock(name).read_bytes(), repair(stock(name), None).data
    old, new = deserialize_pte_binary(before), deserialize_pte_binary(after)
    for made in (old, new):
        for blob in made.program.backend_delegate_data:
            assert blob.data[4:8] == b"VH00"
            blob.data = b""
    assert new == old
    program, repaired = open_program(before), open_program(after)
    assert repaired.named_data == program.named_data
    blobs = {d.offset for m in program.methods for d in m.delegates}
    for (start, size), (moved, length) in zip(program.segments, repaired.segments, strict=True):
        if start not in blobs:
            assert repaired.read(moved, length) == program.read(start, size)
        assert moved % 16 == start % 16


@pytest.mark.parametrize("name", FIXABLE)
def test_the_graphs_own_constants_are_untouched(name: str, stock: Stock) -> None:
    program, repaired = open_program(stock(name)), open_program(repair(stock(name), None).data)
    for old, new in zip(graphs(program), graphs(repaired), strict=True):
        assert new.version == old.version
        assert (new.input_ids, new.output_ids) == (old.input_ids, old.output_ids)
        assert (new.storage_override, new.layout_override) == (
            old.storage_override,
            old.layout_override,
        )
        for index, constant in enumerate(old.constants):
            assert new.constants[index].named_key == constant.named_key
            assert new.constant_bytes(index) == old.constant_bytes(index)


# Op -> the places of weight and bias, with what a repair fills them with, and the dim of x that is
# as long, from the end or the start.
NORMS: dict[str, tuple[int, tuple[tuple[int, float], ...]]] = {
    "et_vk.rms_norm.default": (-1, ((1, 1.0),)),
    "aten.native_layer_norm.default": (-1, ((2, 1.0), (3, 0.0))),
    "aten.native_group_norm.default": (1, ((1, 1.0), (2, 0.0))),
    "aten._native_batch_norm_legit_no_training.default": (1, ((1, 1.0), (2, 0.0))),
}
OTHER_RANK = {"EG109", "EG111"}
UNIT = [
    name
    for name in FIXABLE
    if set(MODELS[name].codes) - OTHER_RANK
    and "statistics" not in name
    and any(op in NORMS for ops in MODELS[name].ops for op in ops)
]


@pytest.mark.parametrize("name", UNIT)
def test_unit_weights_are_ones(name: str, stock: Stock) -> None:
    """Every norm of a repaired graph has a constant weight: the old one, or ones of x's size."""
    import torch

    dtypes = {4: torch.float16, 5: torch.float32}
    old_counts = [len(graph.constants) for graph in graphs(open_program(stock(name)))]
    found = 0
    for graph, old in zip(
        graphs(open_program(repair(stock(name), None).data)), old_counts, strict=True
    ):
        for op in graph.ops:
            dim, places = NORMS.get(op.name, (0, ()))
            for place, fill in places:
                size = graph.values[op.args[0]].value.dims[dim]
                tensor = graph.values[op.args[place]].value
                assert tensor.constant_id >= 0
                assert tensor.dims[-1] == size
                if tensor.constant_id >= old:
                    data = bytearray(graph.constant_bytes(tensor.constant_id))
                    assert (torch.frombuffer(data, dtype=dtypes[tensor.dtype]) == fill).all()
                    assert len(data) == size * (2 if tensor.dtype == 4 else 4)
                    found += 1
    assert found


@pytest.mark.parametrize("name", FIXABLE)
def test_executorch_opens_it(name: str, stock: Stock) -> None:
    """The pip runtime takes the program, and ExecuTorch's own schema the graphs."""
    from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
        flatbuffer_to_vk_graph,
    )
    from executorch.runtime import Runtime, Verification

    data = repair(stock(name), None).data
    program = Runtime.get().load_program(data, verification=Verification.InternalConsistency)
    assert program.method_names == {"forward", *MODELS[name].methods}
    for graph in graphs(open_program(data)):
        theirs = flatbuffer_to_vk_graph(bytes(graph.flatbuffer))
        assert [(op.name, tuple(op.args)) for op in theirs.chain] == [
            (op.name, op.args) for op in graph.ops
        ]


@pytest.mark.parametrize("name", FIXABLE)
def test_temporaries_share_memory(name: str, stock: Stock) -> None:
    """What repair adds to activation memory is at most its largest temporary, per graph.

    Of an op that is no norm over rows, several temporaries are needed at a time.
    """
    result = repair(stock(name), None)
    program, repaired = open_program(stock(name)), open_program(result.data)
    allowed = 0
    for old, new in zip(graphs(program), graphs(repaired), strict=True):
        added = [
            value.value
            for value in new.values[len(old.values) :]
            if value.kind == "tensor" and value.value.constant_id < 0
        ]
        sizes = [4 * _padded(tensor.dims) for tensor in added]
        allowed += sum(sizes) if name in OP_MODELS else max(sizes, default=0)
    assert result.added_activation_bytes <= allowed


def _padded(dims: tuple[int, ...]) -> int:
    """Elements of a tensor in the roomiest of the packed layouts: each dim a multiple of 4."""
    count = 1
    for dim in (1, 1, 1, *dims)[-max(3, len(dims)) :]:
        count *= -(-dim // 4) * 4
    return count


def test_the_overlay_is_a_source(stock: Stock) -> None:
    result = repair(stock("one_plus"), None)
    overlay = result.overlay
    assert check(overlay).clean
    assert overlay.size == len(result.data)
    assert overlay.read(3, 20) == result.data[3:23]
    with pytest.raises(IndexError):
        overlay.read(overlay.size - 1, 2)
    end = 0
    original = stock("one_plus").read_bytes()
    for extent in overlay.extents:
        assert extent.start == end
        end += extent.length
        if extent.source is not None:
            run = original[extent.source : extent.source + extent.length]
            assert result.data[extent.start : end] == run
    assert end == overlay.size


def test_the_weights_of_a_large_file_are_not_copied_to_memory(stock: Stock) -> None:
    """4 MB of weights: in the overlay they stay the original's bytes."""
    overlay = repair(stock("large_faulty"), None).overlay
    kept = sum(extent.length for extent in overlay.extents if extent.source is not None)
    assert kept > 4_000_000
    assert overlay.size - kept < 100_000


def test_the_output_keeps_no_trace_on_failure(stock: Stock, tmp_path: Path) -> None:
    data = bytearray(stock("one_plus").read_bytes())
    data[4:8] = b"NOPE"
    with pytest.raises(EtvkGuardError):
        repair(bytes(data), tmp_path / "out.pte")
    folder = tmp_path / "closed"
    folder.mkdir()
    with pytest.raises(EtvkGuardError) as caught:
        repair(stock("one_plus"), folder)
    assert caught.value.code == "EG018"
    assert str(folder) in caught.value.message
    assert list(tmp_path.rglob("*")) == [folder]


def test_the_output_replaces_a_file(stock: Stock, tmp_path: Path) -> None:
    out = tmp_path / "out.pte"
    out.write_text("old")
    repair(stock("one_plus"), out)
    assert check(out).clean
    assert os.listdir(tmp_path) == ["out.pte"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("link", ["same", "symlink", "hard link"])
def test_the_input_is_never_the_output(link: str, stock: Stock, tmp_path: Path) -> None:
    source, out = tmp_path / "in.pte", tmp_path / "link.pte"
    source.write_bytes(stock("one_plus").read_bytes())
    before = source.read_bytes()
    if link == "symlink":
        out.symlink_to(source)
    elif link == "hard link":
        os.link(source, out)
    else:
        out = source
    with pytest.raises(EtvkGuardError) as caught:
        repair(source, out)
    assert (caught.value.code, caught.value.name) == ("EG019", "output-is-input")
    assert source.read_bytes() == before
