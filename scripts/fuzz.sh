#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets (tests/fuzz) that a build folder holds, and fails on the first finding; the input is kept in
# BUILD_FOLDER/findings. What was learned stays in BUILD_FOLDER/corpus, and the next run starts from it.
#   FUZZ_SECONDS=30 FUZZ_JOBS=1 scripts/fuzz.sh BUILD_FOLDER [TARGET...]
#   FUZZ_MINIMIZE=1 scripts/fuzz.sh BUILD_FOLDER [TARGET...]     instead: writes a minimal corpus to tests/fuzz/corpus
set -euo pipefail
build=$(cd "${1:?usage: fuzz.sh BUILD_FOLDER [TARGET...]}" && pwd)
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(check repair blob overlay)
tests=$(cd "$(dirname "$0")/../tests" && pwd)
export build tests limits="-timeout=5 -rss_limit_mb=1024 -malloc_limit_mb=256 -max_len=16384"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=allocator_may_return_null=1:quarantine_size_mb=16

seeds() { # TARGET
  echo "$tests/fuzz/corpus/$1"
  case $1 in check | repair) echo "$tests"/data/releases/1.5.1 "$tests/data/remaining" "$tests/data/external" ;; esac
}

fuzz() { # TARGET
  local corpus=$build/corpus/$1 log=$build/fuzz-$1.log
  mkdir -p "$corpus" "$build/findings"
  # shellcheck disable=SC2046,SC2086
  if ! "$build/fuzz/etvk_guard_fuzz_$1" "$corpus" $(seeds "$1") $limits -max_total_time="${FUZZ_SECONDS:-30}" \
    -dict="$tests/fuzz/pte.dict" -artifact_prefix="$build/findings/$1-" -print_final_stats=1 >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $1 found something: $build/findings" >&2
    return 1
  fi
  grep -E '^#[0-9]+.*(DONE|INITED)' "$log" | sed "s/^/$1: /"
}

minimize() { # TARGET
  local corpus=$tests/fuzz/corpus/$1 fresh=$build/minimized/$1
  rm -rf "$fresh" && mkdir -p "$fresh"
  # One input for each edge, not for each count of it; of these the smallest, 70 KB of them. Real files are there anyway.
  # shellcheck disable=SC2046,SC2086
  "$build/fuzz/etvk_guard_fuzz_$1" -merge=1 -use_counters=0 $limits -max_len=4096 "$fresh" $(seeds "$1") "$build/corpus/$1" \
    >/dev/null 2>&1
  find "$fresh" -type f -printf '%s %p\n' | sort -n | awk '(sum += $1) > 70000 { print $2 }' | xargs -r rm
  rm -rf "$corpus" && mv "$fresh" "$corpus"
  echo "$1: $(find "$corpus" -type f | wc -l) files, $(cat "$corpus"/* | wc -c) bytes"
}

export -f fuzz seeds
if [ -n "${FUZZ_MINIMIZE:-}" ]; then
  for target in "${targets[@]}"; do minimize "$target"; done
else
  printf '%s\n' "${targets[@]}" | xargs -P "${FUZZ_JOBS:-1}" -I{} bash -c 'set -eo pipefail; fuzz {}'
fi
