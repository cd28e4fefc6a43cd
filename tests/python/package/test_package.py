# SPDX-License-Identifier: Apache-2.0
"""The installed C++ package: its size, its symbols, and the example that is built with it.

There is no Vulkan delegate here. A stand-in of that name keeps what the runtime gives it, and that
is held against the repaired file as executorch's own reader reads it. tests/vulkan/test_package.py
runs the same example on the real one.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import cxx_package
from cxx_package import Package
from etvk_guard import repair
from models import MODELS
from norms import rand

DATA = Path(__file__).resolve().parents[2] / "data"
LIMIT = 400_000  # bytes


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    base = tmp_path_factory.getbasetemp()
    workers = "PYTEST_XDIST_WORKER" in os.environ  # they share the folder above theirs
    return cxx_package.build((base.parent if workers else base) / "cxx-package")


@pytest.fixture(scope="session")
def archives(package: Package) -> list[str]:
    return [str(package.prefix / f"lib/libetvk_guard_{name}.a") for name in ("pte", "loader")]


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_size(archives: list[str], tmp_path: Path) -> None:
    """All of core and loader, used or not, as a stripped shared library."""
    library = tmp_path / "all.so"
    _output("c++", "-shared", "-s", "-o", str(library),
            "-Wl,--whole-archive", *archives, "-Wl,--no-whole-archive")  # fmt: skip
    print(library.stat().st_size, "bytes")
    assert 50_000 < library.stat().st_size < LIMIT


def test_no_exceptions_no_type_information_no_iostream(archives: list[str]) -> None:
    symbols = {line.split()[-1] for line in _output("nm", *archives).splitlines() if line.strip()}
    assert "_ZNK10etvk_guard17GuardedDataLoader4sizeEv" in symbols
    banned = (
        "__cxa_throw", "__cxa_allocate_exception", "__cxa_begin_catch", "__gxx_personality_v0",
        "__dynamic_cast", "_ZTI", "_ZTS", "_ZTVN10__cxxabiv1", "_ZNSt8ios_base", "_ZSt4cout",
        "_ZSt4cerr", "_ZSt16__ostream_insert", "_ZTVSt9basic_ios", "_ZTVSt15basic_streambuf",
    )  # fmt: skip
    assert [name for name in sorted(symbols) if name.startswith(banned)] == []


def test_no_global_state(archives: list[str]) -> None:
    """No writable section has a byte in it, and nothing runs before main().

    Tables of pointers are constant once they are relocated (.data.rel.ro). flatbuffers' header has
    a byte for each element type that stands for an empty vector and is never written.
    """
    seen = []
    for line in _output("readelf", "-SW", *archives).splitlines():
        words = line.partition("]")[2].split()
        if len(words) < 7 or not words[0].startswith("."):
            continue
        name, size, flags = words[0], int(words[4], 16), words[6]
        if "W" in flags and "A" in flags and size > 0:
            seen.append(name)
    constant = (".data.rel.ro", ".bss._ZZN22etvk_guard_flatbuffers4dataI")
    assert any(name.startswith(".data.rel.ro") for name in seen)  # sections were found at all
    assert [name for name in seen if not name.startswith(constant)] == []


def _inputs(name: str, folder: Path) -> list[str]:
    options = []
    for i, x in enumerate(MODELS[name].inputs()):
        (folder / f"in{i}").write_bytes(x.contiguous().numpy().tobytes())
        options += ["--input", str(folder / f"in{i}")]
    return options


def _run(
    package: Package, folder: Path, model: Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run the example on the stand-in; what that keeps, and the outputs, go to a folder."""
    return package.run(
        model,
        *options,
        "--output",
        str(folder / "out"),
        ETVK_GUARD_BACKEND=str(package.stand_in),
        ETVK_GUARD_STAND_IN=str(folder),
    )


def _delegate_data(path: Path) -> tuple[list[bytes], dict[str, bytes]]:
    """The blobs of forward's delegates, and the named data, by executorch's own reader."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    file = deserialize_pte_binary(path.read_bytes())
    (plan,) = [plan for plan in file.program.execution_plan if plan.name == "forward"]
    inline = file.program.backend_delegate_data
    blobs = [bytes(inline[delegate.processed.index].data) for delegate in plan.delegates]
    store = file.named_data  # None: the program has no constants
    entries = {} if store is None else store.pte_data
    named = {key: bytes(store.buffers[entry.buffer_index]) for key, entry in entries.items()}
    return blobs, named


@pytest.mark.parametrize(
    "name",
    ["1.3.1/one_plus", "1.4.1/gated", "1.5.1/methods", "1.5.1/split", "1.5.1/layer_norm_runtime"],
)
def test_the_runtime_is_served_the_repaired_program(
    package: Package, name: str, tmp_path: Path
) -> None:
    file = DATA / f"releases/{name}.pte"
    kept = tmp_path / "kept"
    kept.mkdir()
    done = _run(package, kept, file, *_inputs(file.stem, tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("repaired: method ") == len(MODELS[file.stem].codes)
    assert "remains" not in done.stdout
    repair(file, tmp_path / "fixed.pte")
    blobs, named = _delegate_data(tmp_path / "fixed.pte")
    faulty, _ = _delegate_data(file)
    got = [(kept / f"blob-{i}").read_bytes() for i in range(len(blobs))]
    assert len(list(kept.glob("blob-*"))) == len(blobs)
    assert got == blobs
    assert got != faulty
    for i in range(len(blobs)):
        prefix = f"named-{i}-"
        files = {path.name[len(prefix) :]: path.read_bytes() for path in kept.glob(prefix + "*")}
        assert files == named
    assert len((kept / "calls").read_text().splitlines()) == len(blobs)


def test_a_data_file_goes_through_the_loader(package: Package, tmp_path: Path) -> None:
    """The second output, cumsum(w), is computed on the CPU from a weight in the .ptd."""
    (tmp_path / "x").write_bytes(rand(2, 8, 64).numpy().tobytes())
    weights = ("--data", str(DATA / "external/outside.ptd"))
    model = DATA / "external/outside.pte"
    done = _run(package, tmp_path, model, *weights, "--input", str(tmp_path / "x"))
    assert done.returncode == 0, done.stderr
    expected = np.cumsum(rand(8, 64, seed=9).numpy(), -1)
    got = np.fromfile(tmp_path / "out1", np.float32).reshape(8, 64)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("keep", [0, 7, 1000])
def test_bad_bytes_are_an_error(package: Package, keep: int, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pte"
    bad.write_bytes((DATA / "releases/1.5.1/gated.pte").read_bytes()[:keep])
    done = package.run(bad)
    assert done.returncode == 1
    assert "the program does not load" in done.stderr


def test_a_component_that_was_not_built(package: Package, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.28)\nproject(t LANGUAGES CXX)\n"
        "find_package(etvk_guard QUIET COMPONENTS vulkan)\n"
        "message(STATUS found=${etvk_guard_FOUND})\n"
    )
    text = _output("cmake", "-S", str(tmp_path), "-B", str(tmp_path / "b"),
                   f"-DCMAKE_PREFIX_PATH={package.prefix}")  # fmt: skip
    assert "found=0" in text.lower().replace("false", "0")


def test_the_documents_code_is_the_examples() -> None:
    """Every line of C++ and CMake in the two sections of docs/deployment.md is in tests/package."""
    text = (DATA.parents[1] / "docs/deployment.md").read_text()
    sections = re.split(r"^## ", text, flags=re.M)
    ours = [part for part in sections if part.startswith(("The guarded loader", "The C++ package"))]
    blocks = re.findall(r"^```(?:cpp|cmake)\n(.*?)^```", "".join(ours), flags=re.M | re.S)
    lines = {line.strip() for block in blocks for line in block.splitlines()} - {""}
    files = [DATA.parent / "package" / name for name in ("example.cpp", "CMakeLists.txt")]
    built = {line.strip() for file in files for line in file.read_text().splitlines()}
    assert len(ours) == 2
    assert len(lines) > 10
    assert lines - built == set()
