# SPDX-License-Identifier: Apache-2.0
"""The contract against the installed executorch: a release that adds an op fails by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from etvk_guard import contract

torch = pytest.importorskip("torch")
pytest.importorskip("executorch.backends.vulkan")

from executorch.backends.vulkan import custom_ops_lib, op_registry  # noqa: E402, F401

# Lowering says of these that they prepack, but their builders do not.
PREPACKS_NOTHING = {"et_vk.linear_dW.default"}

# Lowering keeps these to itself: a pass takes them out before the graph is written, or they have no
# result that a graph holds.
NEVER_WRITTEN = {
    "aten.alias_copy.default", "aten.copy.default", "aten.t_copy.default", "getitem",
    "dim_order_ops._clone_dim_order.default", "_assert_scalar.default",
    "sym_constrain_range_for_size.default", "eq", "ge", "gt", "le", "lt",
}  # fmt: skip


def graph_name(target: Any) -> str:
    """What a VkGraph's OperatorCall would be called, for a key of the registry."""
    if not isinstance(target, str):
        return str(target.__name__)
    # A custom op is registered as "namespace::name", and written as its overload's name.
    namespace, name = target.split("::")
    return f"et_vk.{name}.default" if namespace == "et_vk" else f"{name}.default"


def registered() -> Iterator[tuple[str, Any]]:
    for target, features in op_registry.vulkan_supported_ops.items():
        yield graph_name(target), features


LOWERED = dict(registered())
PREPACKING = sorted(name for name, features in LOWERED.items() if features.supports_prepacking)
MISSING = {info.name for info in contract.missing_ops()}


def test_registry_is_read() -> None:
    assert "et_vk.rms_norm.default" in PREPACKING
    assert len(LOWERED) > 100


@pytest.mark.parametrize("name", PREPACKING)
def test_op_that_prepacks_has_a_row(name: str) -> None:
    if name in MISSING:
        return  # whatever it prepacks, no runtime has it: EG303
    info = contract.op(name)
    assert info is not None, f"{name} is not in the contract"
    assert info.prepack or info.either or name in PREPACKS_NOTHING, f"{name} has no row"


@pytest.mark.parametrize("name", sorted(LOWERED))
def test_op_that_lowering_accepts_is_known(name: str) -> None:
    known = contract.op(name) is not None or f"llama.{name}" in contract.known_ops()
    assert known or name in MISSING or name in NEVER_WRITTEN, f"{name} is not in the contract"


def schema(name: str) -> Any:
    """The schema of an op by its name in a graph, or None where torch does not have it."""
    namespace, _, rest = name.partition(".")
    packet, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload)._schema
    except AttributeError:
        return None


def with_schema() -> list[str]:
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    return [name for name in contract.known_ops() if name.count(".") == 2 and schema(name)]


@pytest.mark.parametrize("name", with_schema())
def test_arguments_are_the_schema_and_the_result(name: str) -> None:
    info = contract.op(name)
    assert info is not None
    assert list(info.args) == [arg.name for arg in schema(name).arguments] + ["out"]


def test_schemas_are_found() -> None:
    names = with_schema()
    assert len(names) > 100
    assert "et_vk.rms_norm.default" in names
    rows = {row.op for row in contract.rows()}
    assert len(rows & set(names)) >= 20


@pytest.mark.parametrize("row", contract.rows(), ids=lambda row: f"{row.op}:{row.name}")
def test_rows_are_tensors(row: contract.PrepackRow) -> None:
    found = schema(row.op) if row.op.count(".") == 2 else None
    if found is not None:
        argument = found.arguments[row.arg]
        assert str(argument.type) in ("Tensor", "Optional[Tensor]")
        # An argument that may be missing must say whether that is legal.
        if str(argument.type) == "Tensor":
            assert not row.none_ok
