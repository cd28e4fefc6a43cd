# SPDX-License-Identifier: Apache-2.0
"""Processes that a fault of the machine happens to: `python faults.py NAME ARGUMENT...`."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from etvk_guard import EtvkGuardError, open_program, repair


def file_limit(source: str, out: str, limit: str) -> str:
    """No file may get larger than `limit` bytes: to the writer the same as a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), most))
    return repaired(source, out)


def no_descriptors(source: str, out: str) -> str:
    """Every file descriptor is in use."""
    taken = len(os.listdir("/proc/self/fd"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken - 1, most))
    return repaired(source, out)


def shrinking(source: str) -> str:
    """The file loses all of its bytes after it was opened."""
    program = open_program(source)
    os.truncate(source, 0)
    return program.methods[0].name


def repaired(source: str, out: str) -> str:
    """What comes of a repair: its output's name, or the error."""
    try:
        return str(repair(source, out).path)
    except EtvkGuardError as error:
        return str(error)


def kills(source: str, out: str, rounds: str, older: str) -> str:
    """Start repairs, kill each at a random moment, and say what was found afterwards.

    With an `older` text the output is there before, with that content.
    """
    chance = random.Random(7)
    before, folder = Path(source).read_bytes(), Path(out).parent
    started = time.monotonic()
    repair(source, out)
    longest = 1.3 * (time.monotonic() - started)
    whole = Path(out).read_bytes()
    seen = {"killed": 0, "finished": 0, "whole": 0, "untouched": 0, "stray": 0}
    for _ in range(int(rounds)):
        Path(out).unlink(missing_ok=True)
        if older:
            Path(out).write_text(older)
        child = os.fork()
        if child == 0:
            repair(source, out)
            os._exit(0)
        time.sleep(chance.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        seen["killed" if killed else "finished"] += 1
        longest *= 1.03 if killed else 0.9  # a busy machine is slower than it was a moment ago
        there = Path(out).read_bytes() if Path(out).exists() else b""
        seen["whole"] += there == whole
        seen["untouched"] += there == older.encode()
        for stray in folder.iterdir():
            if stray not in (Path(source), Path(out)):
                seen["stray"] += 1
                assert stray.name.startswith(".etvk-guard-"), stray
                assert stray.read_bytes() == whole, stray
                stray.unlink()
        assert Path(source).read_bytes() == before
    return json.dumps(seen)


FAULTS: dict[str, Callable[..., str]] = {
    "file_limit": file_limit,
    "no_descriptors": no_descriptors,
    "kills": kills,
    "shrinking": shrinking,
    "repaired": repaired,
}

if __name__ == "__main__":
    print(FAULTS[sys.argv[1]](*sys.argv[2:]))
