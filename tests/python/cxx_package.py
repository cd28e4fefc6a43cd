# SPDX-License-Identifier: Apache-2.0
"""Builds the C++ package as a user does, installs it, and builds tests/package with it.

Core and loader are built for size, without exceptions and type information. What is installed is
moved before it is used: the package must not depend on where it was made.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Package:
    """The installed package, and the built example."""

    prefix: Path
    example: Path
    stand_in: Path

    def run(self, model: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the example on a program."""
        return subprocess.run(
            [str(self.example), str(model), *options],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=120,
        )


def executorch_config() -> Path:
    """The folder with the CMake config of the executorch that is installed."""
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations))) / "share/cmake"


def build(folder: Path) -> Package:
    """Build in a folder, once for all processes that ask for it."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix, example = folder / "moved", folder / "example"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _build_package(folder, prefix)
            _cmake("-S", str(ROOT / "tests/package"), "-B", str(example), "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug",
                   f"-Dexecutorch_DIR={executorch_config()}")  # fmt: skip
            _cmake("--build", str(example), "-j", "2")
            (folder / "done").touch()
    return Package(prefix, example / "example", example / "libstand_in.so")


def _build_package(folder: Path, prefix: Path) -> None:
    made = folder / "build"
    _cmake("-S", str(ROOT), "-B", str(made), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=MinSizeRel",
           "-DETVK_GUARD_LOADER=ON", "-DETVK_GUARD_RTTI=OFF",
           f"-DPython3_EXECUTABLE={sys.executable}")  # fmt: skip
    _cmake("--build", str(made), "-j", "2")
    _cmake("--install", str(made), "--prefix", str(folder / "prefix"))
    (folder / "prefix").rename(prefix)


def _cmake(*arguments: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["cmake", *arguments],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
