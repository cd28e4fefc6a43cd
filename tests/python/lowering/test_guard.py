# SPDX-License-Identifier: Apache-2.0
"""`guard()`, `install()` and `uninstall()`: code that makes its own stock partitioner."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.vulkan.vulkan_preprocess import VulkanBackend
from executorch.exir import to_edge_transform_and_lower
from lowering_cases import Module, rand, rms

import etvk_guard
from etvk_guard.lowering import (
    Decision,
    GuardedVulkanPartitioner,
    guard,
    install,
    installed,
    uninstall,
)

X, S = rand(2, 3, 16), rand(1, 1, 16)
METHODS = ("partition", "ops_to_not_decompose")
STOCK = [VulkanPartitioner.__dict__[name] for name in METHODS]
STOCK_PREPROCESS = VulkanBackend.__dict__["preprocess"]


def export_with_stock() -> bytes:
    """Stands for a recipe: nothing of it knows of the guard."""
    program = torch.export.export(Module(lambda m, x, s: rms(x) * (1 + s)), (X, S))
    edge = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner()])
    return bytes(edge.to_executorch().buffer)


def clean(data: bytes) -> bool:
    return etvk_guard.check(data).findings == ()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    yield
    assert not installed()
    assert [VulkanPartitioner.__dict__[name] for name in METHODS] == STOCK
    assert VulkanBackend.__dict__["preprocess"] is STOCK_PREPROCESS


def test_guards_inside_and_only_inside() -> None:
    assert not clean(export_with_stock())
    with guard() as report:
        assert clean(export_with_stock())
    assert report.count(Decision.UNIT) == 1
    assert not clean(export_with_stock())


def test_nested_contexts() -> None:
    with guard() as outer:
        with guard("guarded") as inner:
            data = export_with_stock()
        assert clean(export_with_stock())
    assert [f.name for f in etvk_guard.check(data).findings] == ["needs-guarded-runtime"]
    assert (inner.count(Decision.KEPT), outer.count(Decision.UNIT)) == (1, 1)


def test_an_error_inside_leaves_nothing() -> None:
    with pytest.raises(KeyError), guard():
        raise KeyError


def test_a_guarded_partitioner_inside_keeps_its_own_report() -> None:
    partitioner = GuardedVulkanPartitioner()
    program = torch.export.export(Module(lambda m, x: rms(x)), (X,))
    with guard() as report:
        to_edge_transform_and_lower(program, partitioner=[partitioner])
    assert len(report) == 0
    assert partitioner.report.count(Decision.UNIT) == 1


def test_threads_are_guarded_each_by_itself() -> None:
    inside, leave = threading.Event(), threading.Event()

    def guarded() -> bytes:
        with guard():
            inside.set()
            assert leave.wait(120)
            return export_with_stock()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(guarded)
        assert inside.wait(120)
        # This thread never entered: it gets stock, although the other is inside.
        assert not clean(export_with_stock())
        leave.set()
        assert clean(future.result())


def test_two_threads_at_once() -> None:
    """Both are inside at once; torch.export itself takes one thread at a time."""
    exporting, inside = threading.Lock(), threading.Barrier(2, timeout=300)

    def run(_: int) -> tuple[bool, int]:
        with guard() as report:
            inside.wait()
            with exporting:
                made = export_with_stock()
            inside.wait()
            return clean(made), report.count(Decision.UNIT)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, range(2))) == [(True, 1), (True, 1)]


def test_install_is_of_the_process_and_twice_is_once() -> None:
    report = install()
    try:
        assert install() is report
        with ThreadPoolExecutor(1) as pool:
            assert clean(pool.submit(export_with_stock).result())
        assert report.count(Decision.UNIT) == 1
        with guard() as inner:
            export_with_stock()
        assert inner.count(Decision.UNIT) == 1
        assert clean(export_with_stock())
    finally:
        uninstall()
    uninstall()
    assert not clean(export_with_stock())


def test_a_wrong_runtime_is_refused() -> None:
    with pytest.raises(ValueError, match="runtime"), guard("other"):  # type: ignore[arg-type]
        pass
    with pytest.raises(ValueError, match="runtime"):
        install("other")  # type: ignore[arg-type]
