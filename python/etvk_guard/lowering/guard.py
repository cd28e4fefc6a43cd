# SPDX-License-Identifier: Apache-2.0
"""Guards code that makes its own `VulkanPartitioner`.

Export recipes and LLM exporters build the stock partitioner inside. Within `guard()`, or after
`install()`, its `partition` does what `GuardedVulkanPartitioner.partition` does.

`guard()` is of the thread, or task, that enters it (a context variable); `install()` is of the
process. Stock's method is wrapped while either is in force, and put back after the last.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from etvk_guard.lowering._compat import VulkanPartitioner
from etvk_guard.lowering.partitioner import (
    GuardedVulkanPartitioner,
    guarded_ops_to_not_decompose,
    guarded_partition,
)
from etvk_guard.lowering.report import LoweringReport
from etvk_guard.lowering.site import Runtime

__all__ = ["guard", "install", "installed", "uninstall"]


@dataclass
class _Guard:
    runtime: Runtime
    report: LoweringReport = field(default_factory=LoweringReport)


_lock = threading.RLock()
_users = 0  # Contexts entered and not left, plus one while installed.
_stock: dict[str, Any] = {}  # The methods that were replaced.
_installed: _Guard | None = None
_current: ContextVar[_Guard | None] = ContextVar("etvk_guard", default=None)


@contextmanager
def guard(runtime: Runtime = "stock") -> Iterator[LoweringReport]:
    """Guard every stock `VulkanPartitioner` that this thread uses inside the context.

    Args:
        runtime: as of `GuardedVulkanPartitioner`.

    Yields:
        The report of what is lowered inside. Of nested contexts, the inner one counts.
    """
    own = _Guard(_checked(runtime))
    _acquire()
    token = _current.set(own)
    try:
        yield own.report
    finally:
        _current.reset(token)
        _release()


def install(runtime: Runtime = "stock") -> LoweringReport:
    """Guard every stock `VulkanPartitioner` of this process, until `uninstall()`.

    A second call changes nothing but the runtime, and returns the same report.
    """
    global _installed
    _checked(runtime)
    with _lock:
        if _installed is None:
            _acquire()
            _installed = _Guard(runtime)
        else:
            _installed.runtime = runtime
        return _installed.report


def uninstall() -> None:
    """Undo `install()`. Does nothing where nothing is installed."""
    global _installed
    with _lock:
        if _installed is not None:
            _installed = None
            _release()


def installed() -> bool:
    """Whether `install()` is in force."""
    return _installed is not None


def _checked(runtime: Runtime) -> Runtime:
    if runtime not in ("stock", "guarded"):
        raise ValueError(f'runtime is "stock" or "guarded", not {runtime!r}')
    return runtime


def _acquire() -> None:
    global _users
    with _lock:
        _users += 1
        if not _stock:
            for name, guarded in _GUARDED.items():
                _stock[name] = VulkanPartitioner.__dict__[name]
                setattr(VulkanPartitioner, name, _guarded(_stock[name], guarded))


def _guarded(stock: Any, guarded: Callable[..., Any]) -> Any:
    """A method of stock's partitioner that does as `guarded` where a guard is in force."""

    @functools.wraps(stock)
    def method(self: Any, program: Any) -> Any:
        active = _current.get() or _installed
        if active is None or isinstance(self, GuardedVulkanPartitioner):
            return stock(self, program)
        return guarded(self, program, active)

    return method


def _partition(self: Any, program: Any, active: _Guard) -> Any:
    return guarded_partition(self, program, active.runtime, active.report)


def _ops_to_not_decompose(self: Any, program: Any, active: _Guard) -> Any:
    return guarded_ops_to_not_decompose(_stock["ops_to_not_decompose"](self, program))


_GUARDED = {"partition": _partition, "ops_to_not_decompose": _ops_to_not_decompose}


def _release() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users:
            return
        for name, stock in list(_stock.items()):
            if getattr(VulkanPartitioner.__dict__[name], "__wrapped__", None) is stock:
                setattr(VulkanPartitioner, name, stock)
                del _stock[name]
