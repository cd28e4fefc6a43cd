# SPDX-License-Identifier: Apache-2.0
# The two commands are `make demo` and `make test`. Each sets up what it needs (scripts/setup.sh); a second run is quick.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo test setup install lint test-cpp test-kernels test-python test-devices test-fuzz fuzz test-cross tools test-vulkan test-releases models fleet bench docs clean

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
JOBS ?= $(shell nproc)
SOURCES := $(shell find python cpp third_party -type f -not -name '*.so' -not -path '*/__pycache__/*') \
           CMakeLists.txt pyproject.toml
export PATH := $(BIN):$(PATH)
export PYTHONDONTWRITEBYTECODE := 1

demo: install
	$(BIN)/python -m etvk_guard.demo

test: lint test-cpp test-kernels test-python test-devices test-fuzz

setup: $(VENV)/.ready
$(VENV)/.ready: requirements/test.txt scripts/setup.sh
	PYTHON=$(PYTHON) bash scripts/setup.sh $(VENV)
	touch $@

# The package as a user gets it: built by pip from the sources, not an editable install. The build folder is kept.
install: $(VENV)/.installed
$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	touch $@

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_stubs.py
	$(BIN)/python -m etvk_guard.contract.docs --check --output docs/findings.md

test-cpp: setup
	cmake -S . -B build/cpp -G Ninja -DCMAKE_BUILD_TYPE=Debug -DETVK_GUARD_TESTS=ON -DETVK_GUARD_SANITIZE=ON
	cmake --build build/cpp -j $(JOBS)
	ctest --test-dir build/cpp --output-on-failure -j $(JOBS)

# Our SPIR-V kernels on every Vulkan device found (a CPU driver will do), under the Khronos validation layer.
test-kernels: setup
	cmake -S . -B build/kernels -G Ninja -DCMAKE_BUILD_TYPE=Release -DETVK_GUARD_HARNESS=ON
	cmake --build build/kernels -j $(JOBS) --target etvk-guard-kernels
	bash scripts/run_kernels.sh build/kernels --test --validate

test-python: install
	$(BIN)/python -m pytest -n $(JOBS) -q

# The device tool for this machine and for arm64 (under qemu's user emulation) held against the Python command, and the Java face.
CROSS = -G Ninja -Wno-dev -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/scripts/cross.cmake
MACHINE := $(shell uname -m)
test-devices: install
	bash scripts/setup_devices.sh javac aarch64-linux-gnu-g++ qemu-aarch64
	cmake -S cpp/tools -B build/devices/native -G Ninja -DETVK_GUARD_JNI=ON
	cmake --build build/devices/native -j $(JOBS)
	cmake -S cpp/tools -B build/devices/arm64 $(CROSS) -DETVK_GUARD_MACHINE=aarch64
	cmake --build build/devices/arm64 -j $(JOBS)
	$(BIN)/python -m pytest -n $(JOBS) -q tests/tools --tool $(MACHINE)=build/devices/native/etvk-guard-pte \
	  --tool aarch64=build/devices/arm64/etvk-guard-pte
	$(BIN)/python -m pytest -q tests/jni --jni build/devices/native/jni

# Hostile bytes: each target of tests/fuzz for FUZZ_SECONDS, with clang's libFuzzer and both sanitizers.
FUZZ_SECONDS ?= 30
FUZZ_JOBS ?= 1
fuzz: setup
	compiler=$$(bash scripts/setup_fuzz.sh) && cmake -S cpp/pte -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DCMAKE_CXX_COMPILER=$$compiler -DETVK_GUARD_FUZZ=ON
	cmake --build build/fuzz -j $(JOBS)
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_JOBS=$(FUZZ_JOBS) bash scripts/fuzz.sh build/fuzz

test-fuzz:
	$(MAKE) fuzz FUZZ_SECONDS=30 FUZZ_JOBS=2

# arm64 and 32-bit arm: the core's tests, the tool, the Java library, the guarded loader on ExecuTorch's arm64 wheel; then the
# programs of `make tools`. A quarter of an hour.
test-cross: install tools
	bash scripts/setup_devices.sh javac aarch64-linux-gnu-g++ arm-linux-gnueabihf-g++ qemu-aarch64 qemu-arm
	bash scripts/test_cross.sh $(BIN)/python build/cross
	$(BIN)/python -m pytest -n $(JOBS) -q tests/tools --tool x86_64=build/tools/etvk-guard-pte-x86_64 \
	  --tool aarch64=build/tools/etvk-guard-pte-aarch64

# etvk-guard-pte as it is shipped: with musl, for arm64 and x86-64. The first build of a machine's C++ library takes minutes.
TOOLS := aarch64 x86_64
tools: setup
	$(BIN)/python -m pip install --quiet -r requirements/devices.txt
	for machine in $(TOOLS); do \
	  cmake -S cpp/tools -B build/tools/$$machine -G Ninja -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cpp/tools/zig.cmake \
	    -DETVK_GUARD_TARGET=$$machine-linux-musl && \
	  cmake --build build/tools/$$machine -j $(JOBS) && \
	  cp build/tools/$$machine/etvk-guard-pte build/tools/etvk-guard-pte-$$machine || exit 1; \
	done

# Needs a Vulkan delegate: see "The real delegate" in README.md.
test-vulkan: install
	$(BIN)/python -m pytest -q tests/vulkan

# Guarded lowering with each supported release of executorch: several GB of environments, and half an hour.
test-releases:
	PYTHON=$(PYTHON) bash scripts/test_releases.sh build/releases

# Models of transformers and diffusers, lowered by stock and under guard, on the delegate ETVK_GUARD_BACKEND: docs/models.md.
models: install
	$(BIN)/python -m pip install --quiet -r requirements/models.txt
	$(BIN)/python bench/lowering_models.py --backend "$(ETVK_GUARD_BACKEND)"

# docs/examples/audit_ray.py on a local Ray: a thousand programs behind a web server on this machine.
fleet: install
	$(BIN)/python -m pip install --quiet -r requirements/fleet.txt
	$(BIN)/python bench/fleet.py

bench: install
	$(BIN)/python bench/run.py

docs: install
	$(BIN)/python -m etvk_guard.contract.docs --output docs/findings.md

clean:
	rm -rf build dist $(VENV)
