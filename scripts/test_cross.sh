#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# arm64 and 32-bit arm under qemu's user emulation: the core's tests, the device tool, the Java face's library (linked, not run), and
# on arm64 the guarded loader with the libexecutorch.so of ExecuTorch's wheel.
#   scripts/test_cross.sh PYTHON BUILD_FOLDER
set -euo pipefail
python=${1:?usage: test_cross.sh PYTHON BUILD_FOLDER}
build=${2:?usage: test_cross.sh PYTHON BUILD_FOLDER}
cd "$(dirname "$0")/.."
declare -A triplets=([aarch64]=aarch64-linux-gnu [arm]=arm-linux-gnueabihf)

core() { # MACHINE
  cmake -S cpp/tools -B "$build/$1" -G Ninja -Wno-dev -DCMAKE_TOOLCHAIN_FILE="$PWD/scripts/cross.cmake" \
    -DETVK_GUARD_MACHINE="$1" -DETVK_GUARD_BUILD_TESTS=ON -DETVK_GUARD_JNI=ON
  cmake --build "$build/$1"
  "qemu-$1" -L "/usr/${triplets[$1]}" "$build/$1/tests/etvk_guard_pte_tests"
  "$python" -m pytest -q tests/tools --tool "$1=$build/$1/etvk-guard-pte"
}

# Held against the wheel's own library: what is printed is what Python finds.
loader() {
  local release wheel=$build/wheel
  release=$("$python" -c "import importlib.metadata as m; print(m.version('executorch').partition('+')[0])")
  [ -d "$wheel/executorch" ] || {
    "$python" -m pip download --quiet --no-deps --only-binary=:all: --platform manylinux_2_28_aarch64 -d "$wheel" "executorch==$release"
    "$python" -m zipfile -e "$wheel"/executorch-*.whl "$wheel"
  }
  local lib=$wheel/executorch/lib include=$wheel/executorch/include
  local flags=(-std=c++17 -O1 -DC10_USING_CUSTOM_GENERATED_MACROS -Icpp/loader -Icpp/loader/include -Icpp/pte/include
    "-I$build/aarch64/pte/generated" -isystem "$include" -isystem "$include/executorch/runtime/core/portable_type/c10")
  aarch64-linux-gnu-g++ "${flags[@]}" -shared -fPIC tests/package/stand_in.cpp -L"$lib" -lexecutorch -o "$build/stand_in.so"
  aarch64-linux-gnu-g++ "${flags[@]}" tests/package/example.cpp cpp/loader/*.cpp "$build/aarch64/pte/libetvk_guard_pte.a" \
    -Wl,--no-as-needed -L"$lib" -lexecutorch -lexecutorch_kernels_optimized -ldl -o "$build/example"
  "$python" scripts/check_cross_loader.py "$build/example" "$build/stand_in.so" "$lib"
}

core aarch64
loader
core arm
