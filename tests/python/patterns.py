# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's fusion patterns, made once instead of anew for each lowering (8 s)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@functools.cache
def _graphs(function: Callable[[], Any]) -> Any:
    return function()


@contextmanager
def patterns_made_once() -> Iterator[None]:
    """For the time of it, the graphs of stock's patterns are those that were made first."""
    from executorch.backends.vulkan.patterns import fusable_patterns

    before = {
        name: entry.get_graphs_fn
        for name, entry in fusable_patterns.items()
        if entry.get_graphs_fn is not None
    }
    for name, function in before.items():
        fusable_patterns[name].get_graphs_fn = functools.partial(_graphs, function)
    try:
        yield
    finally:
        for name, function in before.items():
            fusable_patterns[name].get_graphs_fn = function
