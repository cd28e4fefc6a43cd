# SPDX-License-Identifier: Apache-2.0
"""Tests on the real Vulkan delegate: `make test-vulkan`.

ETVK_GUARD_BACKEND names the delegate, ETVK_GUARD_BUILDER the op builder (docs/runtime.md says how
to get them). Without them these tests fail: they are not part of `make test`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TABLE = HERE.parent / "python"
sys.path.insert(0, str(HERE))  # for lowered.py
VARIABLES = ("ETVK_GUARD_BACKEND", "ETVK_GUARD_BUILDER")


def pytest_configure(config: pytest.Config) -> None:
    missing = [name for name in VARIABLES if not os.environ.get(name)]
    if missing:
        raise pytest.UsageError(f"set {' and '.join(missing)}: see docs/runtime.md")


@pytest.fixture(scope="session", autouse=True)
def vulkan():
    """The delegate with the builder in effect, in this process."""
    from etvk_guard import runtime

    status = runtime.enable_vulkan()
    assert status.available, status.messages
    assert status.guarded, status.messages
    assert status.builder is not None
    assert all(status.builder.ops.values()), status.builder
    assert runtime.vulkan_devices()
    print([device.name for device in runtime.vulkan_devices()])
    return status


@pytest.fixture(scope="session")
def folder(pytestconfig: pytest.Config) -> Path:
    """Where lowered programs are kept: a name that changes with whatever they depend on."""
    parts = [(TABLE / name).read_bytes() for name in ("models.py", "norms.py", "exporting.py")]
    parts += [importlib.metadata.version(name).encode() for name in ("torch", "executorch")]
    assert pytestconfig.cache is not None
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    return pytestconfig.cache.mkdir(f"stock-{key}")


@pytest.fixture(scope="session")
def stock(folder: Path) -> Callable[[str], str]:
    """The file that the stock partitioner makes of a row of `models.MODELS`, by its name."""

    def get(name: str) -> str:
        path = folder / f"{name}.pte"
        if not path.exists():
            from exporting import stock_file

            stock_file(name, folder)
        return str(path)

    return get


@pytest.fixture(scope="session")
def in_child() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python code in a fresh process, with more environment variables."""

    def run(code: str, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *args],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run
