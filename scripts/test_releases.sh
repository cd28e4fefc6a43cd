#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of guarded lowering with each release of requirements/releases.txt, in an environment of its own.
#   PYTHON=python3 RELEASES="1.3.1 1.4.1" scripts/test_releases.sh FOLDER [PYTEST ARGUMENTS...]
# An environment of several GB is made for each release in FOLDER, and kept.
set -euo pipefail
folder=${1:?usage: test_releases.sh FOLDER [PYTEST ARGUMENTS...]}
shift
python=${PYTHON:-python3}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."
failed=()
while read -r release packages <&3; do
  case $release in ''|'#'*) continue ;; esac
  if [ -n "${RELEASES:-}" ] && [[ " $RELEASES " != *" $release "* ]]; then continue; fi
  venv=$folder/$release
  if [ ! -e "$venv/.ready" ]; then
    "$python" -m venv "$venv"
    read -ra pinned <<< "$packages"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
      "executorch==$release" "${pinned[@]}" -r <(grep -vE '^(torch|executorch|ruff|mypy|pybind11-stubgen)==' requirements/test.txt)
    touch "$venv/.ready"
  fi
  # On PATH, since ExecuTorch calls `flatc` by its name alone.
  PATH="$venv/bin:$PATH" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps --no-build-isolation --force-reinstall .
  echo "== executorch $release"
  PATH="$venv/bin:$PATH" "$venv/bin/python" -m pytest -q "$@" tests/python/lowering || failed+=("$release")
done 3< requirements/releases.txt
if [ ${#failed[@]} -gt 0 ]; then
  echo "test_releases: failed with ${failed[*]}" >&2
  exit 1
fi
