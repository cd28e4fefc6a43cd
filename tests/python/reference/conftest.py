# SPDX-License-Identifier: Apache-2.0
"""Exporting a module with the stock partitioner, and comparing with eager."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from patterns import patterns_made_once

Lower = Callable[..., bytes]


def lower_stock(
    modules: torch.nn.Module | Mapping[str, torch.nn.Module],
    inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    dynamic: Any = None,
) -> bytes:
    """A `.pte` as the stock partitioner lowers it; several methods from a mapping."""
    single = isinstance(modules, torch.nn.Module)
    named = {"forward": modules} if single else dict(modules)
    with _silent(), torch.no_grad(), patterns_made_once():
        from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
        from executorch.exir import to_edge_transform_and_lower

        programs = {
            name: torch.export.export(module.eval(), tuple(inputs), dynamic_shapes=dynamic)
            for name, module in named.items()
        }
        partitioner = {name: [VulkanPartitioner(dict(options or {}))] for name in named}
        edge = to_edge_transform_and_lower(programs, partitioner=partitioner)
        return bytes(edge.to_executorch().buffer)


@contextmanager
def _silent() -> Iterator[None]:
    """Without the warnings and the logging that torch and executorch make by themselves."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@pytest.fixture(scope="module")
def lower(request: pytest.FixtureRequest) -> Lower:
    """`lower_stock(...)` with a name first: the file is made once, and kept in pytest's cache.

    Names are those of the test module; the cache changes with that, with this file, and with the
    versions of torch and executorch.
    """
    parts = [Path(request.path).read_bytes(), Path(__file__).read_bytes()]
    parts += [importlib.metadata.version(name).encode() for name in ("torch", "executorch")]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    folder = request.config.cache.mkdir(f"reference-{key}")

    def kept(name: str, *args: Any, **kwargs: Any) -> bytes:
        path = folder / f"{name.replace(' ', '-')}.pte"
        with open(path.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                path.with_suffix(".tmp").write_bytes(lower_stock(*args, **kwargs))
                os.replace(path.with_suffix(".tmp"), path)
        return path.read_bytes()

    return kept


def assert_close(actual: torch.Tensor, expected: torch.Tensor, relative: float) -> None:
    """Equal shape and dtype, and an error of at most `relative` of the largest finite value."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if not expected.is_floating_point():
        assert torch.equal(actual, expected)
        return
    finite = torch.isfinite(expected)
    assert torch.equal(torch.isfinite(actual), finite)
    assert torch.equal(actual[~finite], expected[~finite])
    error = (actual[finite].double() - expected[finite].double()).abs()
    scale = max(float(expected[finite].double().abs().max()), 1e-3) if finite.any() else 1.0
    assert error.numel() == 0 or float(error.max()) <= relative * scale


@pytest.fixture(scope="session")
def close() -> Callable[[torch.Tensor, torch.Tensor, float], None]:
    """`assert_close`."""
    return assert_close
