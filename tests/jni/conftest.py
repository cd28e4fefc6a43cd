# SPDX-License-Identifier: Apache-2.0
"""The Java face on this machine's JVM: `make test-jni`.

pytest tests/jni --jni FOLDER    where CMake has built cpp/jni
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = ROOT / "android/etvk-guard/src/main/java"
sys.path.insert(0, str(HERE.parent / "tools"))  # for builds.py

Java = Callable[..., str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--jni", metavar="FOLDER", help="where libetvk_guard_jni.so is")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--jni")
    if not folder or not (Path(folder) / "libetvk_guard_jni.so").is_file():
        raise pytest.UsageError("--jni FOLDER must hold libetvk_guard_jni.so: see make test-jni")


@pytest.fixture(scope="session")
def java(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Java:
    """Run a main class with the JVM's checks of JNI on; returns what it prints."""
    classes = tmp_path_factory.mktemp("classes")
    # The level of Android's oldest releases; a JDK that says so is old enough news.
    javac = ["javac", "-Xlint:all,-options", "-Werror", "--release", "8", "-encoding", "UTF-8"]
    sources = [*SOURCES.rglob("*.java"), *HERE.glob("*.java")]
    subprocess.run([*javac, "-d", str(classes), *map(str, sources)], check=True, timeout=300)
    libraries = Path(pytestconfig.getoption("--jni")).resolve()

    def run(name: str, *args: object) -> str:
        options = ["-Xcheck:jni", "-Xmx64m", "-ea", f"-Djava.library.path={libraries}"]
        command = ["java", *options, "-cp", str(classes), name, *map(str, args)]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""
        text = done.stdout.decode()
        assert "WARNING" not in text  # of -Xcheck:jni
        return text

    return run
