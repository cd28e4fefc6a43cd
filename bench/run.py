# SPDX-License-Identifier: Apache-2.0
"""Runs the benches, each by the one command that is its own: `make bench`.

    python bench/run.py [--quick] [--list] [NAME...]

Exit code: 0, or 1 if a bench failed or missed the limit that it sets itself. The kernels' bench
needs the harness, which `make test-kernels` builds, or ETVK_GUARD_KERNELS names.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HARNESS = ROOT / "build" / "kernels" / "cpp" / "harness" / "etvk-guard-kernels"


@dataclass(frozen=True)
class Bench:
    """A bench: what it measures, its command, and what makes that quick, if anything does."""

    name: str
    what: str
    command: tuple[str, ...]
    quick: tuple[str, ...] | None = None


BENCHES = (
    Bench("check", "checking a 4 GB file and large graphs", ("bench/check.py",)),
    Bench("repair", "repairing a 2 GB file, beside cp", ("bench/repair.py",)),
    Bench("loader", "loading a 500 MB model through the guarded loader", ("bench/loader.py",)),
    Bench("lowering", "what the guard adds to lowering", ("bench/lowering.py",),
          ("--layers", "4", "--runs", "1")),
    Bench("remote", "checking through URLs: writes docs/scale.md", ("bench/remote.py",)),
    Bench("kernels", "the norm kernels on the first Vulkan device", ("-m", "etvk_guard", "bench"),
          ("--quick",)),
)  # fmt: skip


def run(bench: Bench, quick: bool) -> bool:
    """Whether it ran and was content."""
    command = [sys.executable, *bench.command, *((bench.quick or ()) if quick else ())]
    print(f"== {bench.name}: {bench.what}\n$ {shlex.join(['python', *command[1:]])}", flush=True)
    environment = {"ETVK_GUARD_KERNELS": str(HARNESS), **os.environ}
    start = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print(f"   {time.monotonic() - start:.0f} s, exit code {code}\n", flush=True)
    return code == 0


def main() -> int:
    """Run the benches that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="only what can be quick, and less of it"
    )
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    known = {bench.name: bench for bench in BENCHES}
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names] or list(BENCHES)
    if options.quick and not options.names:
        chosen = [bench for bench in chosen if bench.quick is not None]
    if options.list:
        for bench in chosen:
            print(f"{bench.name:10} python {shlex.join(bench.command):28} {bench.what}")
        return 0
    failed = [bench.name for bench in chosen if not run(bench, options.quick)]
    if failed:
        print(f"failed, or missed a limit: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
