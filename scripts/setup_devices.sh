#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what builds and tests for other machines and for Java need, where it is missing (Debian or Ubuntu; as root only).
#   scripts/setup_devices.sh COMMAND...
set -euo pipefail

declare -A packages=(
  [aarch64-linux-gnu-g++]=g++-aarch64-linux-gnu [arm-linux-gnueabihf-g++]=g++-arm-linux-gnueabihf
  [qemu-aarch64]=qemu-user [qemu-arm]=qemu-user [javac]=default-jdk-headless
)
missing=()
for command in "$@"; do
  command -v "$command" >/dev/null || missing+=("${packages[$command]}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ]; then
  echo "setup: not root; please install: ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
