# SPDX-License-Identifier: Apache-2.0
"""Ten thousand inferences, two hundred loads, two threads: right throughout, and memory is stable.

Memory is the process' resident set; lavapipe's "GPU" memory is in it too.
"""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

from etvk_guard import runtime
from etvk_guard.runtime._inputs import largest_error
from models import MODELS

pytestmark = pytest.mark.slow

INFERENCES = 10_000
LOADS = 200
ALLOWED = 4 << 20  # bytes: what the allocators' caches may still grow by once warm


def resident() -> int:
    gc.collect()
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


def expected(name: str):
    return MODELS[name].make().eval()(*MODELS[name].inputs()).detach()


def test_soak(stock):
    names = ["scale", "runtime_b1d", "constant_1", "layer_norm_runtime"]
    programs = [(name, runtime.load(stock(name), "builder")) for name in names]
    rounds = INFERENCES // len(names)
    results = {}
    warm = 0
    for step in range(rounds):
        for name, program in programs:
            (results[name],) = program.forward(*MODELS[name].inputs())
        if step == rounds // 5:
            warm = resident()
    grown = resident() - warm
    for name in names:
        assert largest_error(results[name], expected(name)) <= MODELS[name].tolerance
    assert grown <= ALLOWED, f"{grown} bytes in {rounds * 4 // 5 * len(names)} inferences"


def test_load_and_unload(stock):
    paths = [stock(name) for name in ("scale", "constant_up", "layer_norm_bare")]
    warm = 0
    for step in range(LOADS):
        program = runtime.load(paths[step % len(paths)], "builder")
        program.load_method("forward")
        del program
        if step == LOADS // 4:
            warm = resident()
    grown = resident() - warm
    assert grown <= 2 * ALLOWED, f"{grown} bytes in {LOADS * 3 // 4} loads"


def test_two_threads(stock):
    """Each thread loads and runs its own programs, while the other does."""
    failures: list[str] = []

    def work(name: str) -> None:
        want = expected(name)
        for _ in range(20):
            program = runtime.load(stock(name), "builder")
            for _ in range(10):
                (result,) = program.forward(*MODELS[name].inputs())
                error = largest_error(result, want)
                if error > MODELS[name].tolerance:
                    failures.append(f"{name}: {error}")

    for name in ("scale", "gated"):
        stock(name)  # lowered before the threads start
    threads = [threading.Thread(target=work, args=(name,)) for name in ("scale", "gated")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
        assert not thread.is_alive()
    assert failures == []
