# SPDX-License-Identifier: Apache-2.0
"""The last audit, of finished Vulkan graphs, and the casts that are settled before it."""

from __future__ import annotations

import pytest
from executorch.backends.vulkan.serialization.vulkan_graph_schema import (
    Double,
    Null,
    OperatorCall,
    VkDataType,
    VkGraph,
    VkMemoryLayout,
    VkStorageType,
    VkTensor,
    VkValue,
)
from norm_cases import NORM_CASES
from op_cases import CPU, OP_CASES

from etvk_guard import contract
from etvk_guard.lowering import LoweringError, _compat, audit
from etvk_guard.lowering.audit import audit_graph
from etvk_guard.lowering.rules import RULES
from etvk_guard.lowering.vkgraph import settle_casts

NORM, LINEAR, LAYER = (
    "et_vk.rms_norm.default",
    "aten.linear.default",
    "aten.native_layer_norm.default",
)


def _tensor(
    *dims: int,
    constant: int = -1,
    dtype: VkDataType = VkDataType.FLOAT32,
    storage: VkStorageType = VkStorageType.TEXTURE_3D,
) -> VkValue:
    layout = VkMemoryLayout.TENSOR_WIDTH_PACKED
    return VkValue(VkTensor(dtype, list(dims), constant, -1, storage, layout, dtype))


def _graph(name: str, *values: VkValue, inputs: tuple[int, ...] = (0,)) -> VkGraph:
    call = OperatorCall(node_id=0, name=name, args=list(range(len(values))))
    return VkGraph(
        version="0",
        chain=[call],
        values=list(values),
        input_ids=list(inputs),
        output_ids=[len(values) - 1],
        constants=[],
        shaders=[],
    )


X, OUT, EPS = _tensor(2, 3, 8), _tensor(2, 3, 8), VkValue(Double(1e-6))
NONE = VkValue(Null())

LEGAL = {
    "row": _graph(NORM, X, _tensor(8, constant=0), EPS, OUT),
    "row_11d": _graph(NORM, X, _tensor(1, 1, 8, constant=0), EPS, OUT),
    "linear_without_bias": _graph(LINEAR, X, _tensor(4, 8, constant=0), NONE, OUT),
    "other_op": _graph("aten.mul.Tensor", X, _tensor(2, 3, 8), OUT, inputs=(0, 1)),
}
ILLEGAL = {
    "runtime": (_graph(NORM, X, _tensor(8), EPS, OUT), "is a run-time value"),
    "input": (_graph(NORM, X, _tensor(8, constant=0), EPS, OUT, inputs=(0, 1)), "run-time value"),
    "rows": (_graph(NORM, X, _tensor(3, 8, constant=0), EPS, OUT), "not one row of 8"),
    "number": (_graph(NORM, X, _tensor(1, constant=0), EPS, OUT), "not one row of 8"),
    "column": (_graph(NORM, X, _tensor(8, 1, constant=0), EPS, OUT), "not one row of 8"),
    "linear": (_graph(LINEAR, X, _tensor(4, 8), NONE, OUT), "argument 1 \\(weight\\)"),
    "missing": (_graph(LAYER, X, NONE, NONE, NONE, EPS, OUT), "is missing"),
    "no_builder": (
        _graph("aten.logical_not.default", X, OUT),
        "no runtime registers aten.logical_not",
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    audit_graph(LEGAL[name], guarded_runtime=False)


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal(name: str) -> None:
    graph, message = ILLEGAL[name]
    with pytest.raises(LoweringError, match=message):
        audit_graph(graph, guarded_runtime=False)


def test_a_guarded_runtime_takes_a_runtime_weight_of_a_norm_only() -> None:
    audit_graph(ILLEGAL["runtime"][0], guarded_runtime=True)
    with pytest.raises(LoweringError, match=LINEAR):
        audit_graph(ILLEGAL["linear"][0], guarded_runtime=True)


def test_an_op_that_only_later_runtimes_register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowering of 1.4 accepts comparisons with a number, of which its runtime has `eq` only."""
    monkeypatch.setattr(_compat, "minor_release", lambda: "1.4")
    audit._lacking.cache_clear()
    try:
        audit_graph(_graph("aten.eq.Scalar", X, OUT), guarded_runtime=False)
        with pytest.raises(LoweringError, match=r"of 1\.4 does not register aten\.gt\.Scalar"):
            audit_graph(_graph("aten.gt.Scalar", X, OUT), guarded_runtime=False)
        monkeypatch.setattr(_compat, "minor_release", lambda: "1.5")
        audit._lacking.cache_clear()
        audit_graph(_graph("aten.gt.Scalar", X, OUT), guarded_runtime=False)
    finally:
        audit._lacking.cache_clear()


@pytest.mark.parametrize(
    ("source", "result", "storage", "name"),
    [
        (VkDataType.FLOAT16, VkDataType.FLOAT32, VkStorageType.BUFFER, "buffer"),
        (VkDataType.FLOAT32, VkDataType.FLOAT16, VkStorageType.BUFFER, "buffer"),
        (VkDataType.FLOAT16, VkDataType.FLOAT32, VkStorageType.TEXTURE_3D, "texture"),
        (VkDataType.INT32, VkDataType.FLOAT32, VkStorageType.BUFFER, "texture"),
    ],
)
def test_casts_on_buffers_use_the_op_for_buffers(
    source: VkDataType, result: VkDataType, storage: VkStorageType, name: str
) -> None:
    ends = (_tensor(4, dtype=source, storage=storage), _tensor(4, dtype=result, storage=storage))
    graph = _graph("aten._to_copy.default", ends[0], *[NONE] * 6, ends[1])
    names = {
        "buffer": "dim_order_ops._to_dim_order_copy.default",
        "texture": "aten._to_copy.default",
    }
    assert settle_casts(graph) == (name == "buffer")
    assert graph.chain[0].name == names[name]


FIXED = [row for row in contract.rows() if row.lowering is not None]


@pytest.mark.parametrize("row", FIXED, ids=lambda row: f"{row.op}:{row.name}")
def test_the_rule_that_the_contract_names_is_shown_by_a_case(row: contract.PrepackRow) -> None:
    """And by one whose argument is a run-time value."""
    assert row.lowering in {rule.name for rule in RULES}
    shown = [
        case
        for case in OP_CASES + NORM_CASES
        if any(rule == row.lowering and decision != CPU for rule, decision in case.decisions)
    ]
    assert any("runtime" in case.name or "run-time" in case.reason for case in shown)
