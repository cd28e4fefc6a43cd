#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs clang with its libFuzzer and sanitizers where they are missing (Debian or Ubuntu; as root only), and prints the compiler.
#   scripts/setup_fuzz.sh
set -euo pipefail

# The newest clang++ that links a fuzz target.
find_clang() {
  local compiler
  for compiler in clang++ $(compgen -c clang++- | grep -E '^clang\+\+-[0-9]+$' | sort -t- -k2 -rn); do
    if echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
      "$compiler" -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2>/dev/null; then
      echo "$compiler"
      return
    fi
  done
  return 1
}

find_clang && exit
if [ "$(id -u)" != 0 ]; then
  echo "setup: not root; please install: clang and its libclang-rt-*-dev" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
{
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends clang
  apt-get install -y -qq --no-install-recommends "libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev"
} >&2
find_clang
