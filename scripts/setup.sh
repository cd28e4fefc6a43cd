#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepares a fresh Debian or Ubuntu machine: system packages (as root only), a virtual environment, pinned wheels.
#   PYTHON=python3 scripts/setup.sh VENV
set -euo pipefail
venv=${1:?usage: setup.sh VENV}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")/.." && pwd)

# compiler, GoogleTest, a SPIR-V compiler, Vulkan's loader and headers, a CPU Vulkan driver, the validation layer
packages=(g++ python3-dev python3-venv libgtest-dev glslang-tools spirv-tools libvulkan-dev mesa-vulkan-drivers
          vulkan-validationlayers)
missing=()
if command -v dpkg-query >/dev/null; then
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
fi
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
  else
    echo "setup: not root; please install: ${missing[*]}" >&2
  fi
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements/test.txt"
