# SPDX-License-Identifier: Apache-2.0
"""Every row of the contract fires on a program that stock's partitioner really made.

Few models give a fused op a weight that is no constant: stock's patterns ask for one. So each row
is tried on a file with the op as it should be, in which one index is changed: the argument then is
an input of the graph, or a missing value.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("executorch.backends.vulkan")

from etvk_guard import check, contract, open_program
from exports import EXPORTS

# Rows of the table of models in which the op is as it should be.
MODELS = {
    "et_vk.rms_norm.default": "leaf",
    "aten.native_layer_norm.default": "layer_norm",
    "aten.native_group_norm.default": "group_norm",
    "aten._native_batch_norm_legit_no_training.default": "batch_norm",
    "aten.linear.default": "large",
    "aten.convolution.default": "groups_of_fours",
    "aten.embedding.default": "embedding",
    "et_vk.prepack.default": "one_plus",
}
FILES = set(MODELS) | {export.op for export in EXPORTS}

# Ops that no lowering of the installed release writes from a model of torch's own ops, and why not.
NOT_EXPORTED = {
    "conv_with_clamp.default": "a second name of et_vk.conv_with_clamp",
    "et_vk.conv1d_dw.default": "the builder of aten.convolution calls it",
    "et_vk.conv1d_pw.default": "the builder of aten.convolution calls it",
    "et_vk.conv2d_gemm.default": "only the delegate's own tests call it",
    "et_vk.conv2d_q8csw.default": "only the delegate's own tests call it",
    "et_vk.conv2d_q8ta_q8csw.default": "only the delegate's own tests call it",
    "et_vk.conv2d_q8ta_q8csw_q8to.default": "only the delegate's own tests call it",
    "et_vk.conv2d_q8ta_q8csw_q8to_dw.default": "only the delegate's own tests call it",
    "et_vk.linear_q4gsw_backward.default": "the partitioner takes no operand of bytes",
    "et_vk.linear_q8csw.default": "only the delegate's own tests call it",
    "et_vk.q4gsw_linear.default": "the builder of linear_q4gsw under a second name",
    "et_vk.q4gsw_requant.default": "the partitioner takes no operand of bytes",
    "et_vk.q8ta_conv2d_general.default": "the builder of q8ta_conv2d calls it",
    "et_vk.q8ta_conv2d_im2col.default": "the builder of q8ta_conv2d calls it",
    "etvk.test_conv2d_q8ta_q8csw_q8to.default": "only the delegate's own tests call it",
    "sdpa_with_kv_cache.default": "only from llama's own attention op",
    "testing.compute_attn_weight_with_kv_cache.default": "only the delegate's own tests call it",
}

Stock = Callable[[str], Path]


def test_every_op_is_tried_or_named() -> None:
    rows = {row.op for row in contract.rows()}
    assert rows == FILES | set(NOT_EXPORTED)
    assert not FILES & set(NOT_EXPORTED)


@pytest.fixture(scope="module")
def file_of(pytestconfig: pytest.Config, stock: Stock) -> Callable[[str], bytes]:
    """A program that has the op; made once, and kept in pytest's cache."""
    from exporting import lower_stock
    from model import Model

    parts = [(Path(__file__).parents[1] / "exports.py").read_bytes()]
    parts += [importlib.metadata.version(name).encode() for name in ("torch", "executorch")]
    assert pytestconfig.cache is not None
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    folder = pytestconfig.cache.mkdir(f"exports-{key}")

    def get(op: str) -> bytes:
        if op in MODELS:
            return stock(MODELS[op]).read_bytes()
        path = folder / f"{op}.pte"
        if not path.exists():
            (export,) = [export for export in EXPORTS if export.op == op]
            path.write_bytes(lower_stock(Model(export.make, lambda: export.inputs)))
        return path.read_bytes()

    return get


def args_at(data: bytes, op_offset: int) -> int:
    """Where the items of an OperatorCall's `args`, its field 2, are in the file."""
    (back,) = struct.unpack_from("<i", data, op_offset)
    (field,) = struct.unpack_from("<H", data, op_offset - back + 4 + 2 * 2)
    at = op_offset + field
    (vector,) = struct.unpack_from("<I", data, at)
    return int(at + vector + 4)


def graphs(data: bytes) -> Iterator[Any]:
    for method in open_program(data).methods:
        for delegate in method.delegates:
            if delegate.graph is not None:
                yield delegate.graph


def changed(data: bytes, row: contract.PrepackRow, way: contract.Breaking) -> tuple[bytes, int]:
    """The file with one argument changed, and the op's index in its graph."""
    for graph in graphs(data):
        for index, op in enumerate(graph.ops):
            if op.name != row.op:
                continue
            nulls = [i for i, value in enumerate(graph.values) if value.kind == "null"]
            made = graph.input_ids[0] if way == "runtime" else next(iter(nulls), -1)
            if made < 0:
                pytest.skip("the graph has no missing value")
            edited = bytearray(data)
            struct.pack_into("<i", edited, args_at(data, op.offset) + 4 * row.arg, made)
            return bytes(edited), index
    raise AssertionError(f"the program has no {row.op}")


ROWS = [row for row in contract.rows() if row.op in FILES]
WAYS = [(row, way) for row in ROWS for way in ("runtime", "none") if way in row.broken]


@pytest.mark.parametrize(
    ("row", "way"), WAYS, ids=[f"{row.op}:{row.name}:{way}" for row, way in WAYS]
)
def test_row_fires(
    row: contract.PrepackRow, way: contract.Breaking, file_of: Callable[[str], bytes]
) -> None:
    edited, index = changed(file_of(row.op), row, way)
    found = [
        finding.code
        for finding in check(edited).findings
        if (finding.op, finding.op_index, finding.argument) == (row.op, index, row.name)
    ]
    assert row.broken[way] in found


@pytest.mark.parametrize("op", sorted(FILES))
def test_the_files_are_legal_as_they_are(op: str, file_of: Callable[[str], bytes]) -> None:
    """So that it is the change that is found."""
    names = [name for graph in graphs(file_of(op)) for name in (o.name for o in graph.ops)]
    assert op in names
    found = [finding for finding in check(file_of(op)).findings if finding.op == op]
    assert found == []
