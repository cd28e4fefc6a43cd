#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the kernel harness on Mesa's CPU driver where it is installed, else on the machine's first Vulkan device.
#   scripts/run_kernels.sh BUILD_FOLDER --test|--bench|--list [options]
set -euo pipefail
build=${1:?usage: run_kernels.sh BUILD_FOLDER ACTION [options]}
shift
cpu=$(ls /usr/share/vulkan/icd.d/lvp_icd*.json 2>/dev/null | head -n 1 || true)
if [ -n "$cpu" ]; then
  export VK_ICD_FILENAMES="$cpu" VK_DRIVER_FILES="$cpu"
fi
exec "$build/cpp/harness/etvk-guard-kernels" "$@"
