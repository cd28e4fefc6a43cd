# SPDX-License-Identifier: Apache-2.0
"""Brings stock's preprocessing of the partitions that a guarded partitioner made under guard.

A partitioner only tags nodes: the graph is rewritten later, when `VulkanBackend.preprocess` is
called for each tag, with real weights. `VulkanBackend` is looked up by name and final, so its
method is wrapped, from the moment that a guarded partition exists until the last of them is
lowered, or abandoned. Meanwhile every partition without our token goes to the original, untouched.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from etvk_guard.lowering._compat import VulkanBackend
from etvk_guard.lowering.report import LoweringReport
from etvk_guard.lowering.site import Runtime

__all__ = ["TOKEN_KEY", "Pending", "arm", "armed"]

TOKEN_KEY = "etvk_guard"
"""`node.meta` key under which a delegated node carries the number of its guarded partition."""


@dataclass
class Pending:
    """Partitions of one program that are still to be preprocessed.

    Attributes:
        report: where their decisions are recorded.
        runtime: for which runtime they are lowered.
        remaining: how many there are.
    """

    report: LoweringReport
    runtime: Runtime
    remaining: int


_lock = threading.RLock()
_tokens = itertools.count()
_pending: dict[int, Pending] = {}
_stock: Any = None  # The original classmethod object, while ours is in its place.


def arm(pending: Pending, owner: object, preprocess: Callable[..., Any]) -> int:
    """Announce partitions, and put the wrapper in place.

    Args:
        pending: the partitions.
        owner: the tagged graph module; once it is gone, nothing is pending any more.
        preprocess: called as `preprocess(pending, original, program, compile_specs)` for each.

    Returns:
        The token to put on the partitions' nodes.
    """
    with _lock:
        token = next(_tokens)
        _pending[token] = pending
        _install(preprocess)
    weakref.finalize(owner, _forget, token)
    return token


def armed() -> bool:
    """Whether the wrapper is in place."""
    return _stock is not None


def _install(preprocess: Callable[..., Any]) -> None:
    global _stock
    if _stock is not None:
        return
    _stock = VulkanBackend.__dict__["preprocess"]
    original = _stock.__func__

    def guarded(cls: Any, program: Any, module_compile_spec: Any) -> Any:
        token = _token_of(program)
        with _lock:
            pending = None if token is None else _pending.get(token)
        if pending is None or token is None:
            return original(cls, program, module_compile_spec)
        try:
            return preprocess(pending, original, cls, program, module_compile_spec)
        finally:
            _done(token)

    guarded.__wrapped__ = original  # type: ignore[attr-defined]
    VulkanBackend.preprocess = classmethod(guarded)


def _token_of(program: Any) -> int | None:
    for node in program.graph_module.graph.nodes:
        token = node.meta.get(TOKEN_KEY)
        if token is not None:
            return int(token)
    return None


def _done(token: int) -> None:
    with _lock:
        pending = _pending.get(token)
        if pending is not None:
            pending.remaining -= 1
            if pending.remaining <= 0:
                _forget(token)


def _forget(token: int) -> None:
    global _stock
    with _lock:
        _pending.pop(token, None)
        if _pending or _stock is None:
            return
        current = VulkanBackend.__dict__["preprocess"]
        if getattr(getattr(current, "__func__", None), "__wrapped__", None) is _stock.__func__:
            VulkanBackend.preprocess = _stock
            _stock = None
