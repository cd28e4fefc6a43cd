# SPDX-License-Identifier: Apache-2.0
"""Builds of the device tool, and the data that they are held against the Python command on."""

from __future__ import annotations

import platform
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data/releases"
FILES = sorted(DATA.glob("*/*.pte"))
# `convolution_runtime` of tests/python/op_models.py: its fault has no rewrite inside a file.
REMAINING = DATA.parent / "remaining/convolution_runtime.pte"
EMULATORS = {"x86_64": "qemu-x86_64", "aarch64": "qemu-aarch64", "arm": "qemu-arm"}
WORDS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC]


@dataclass(frozen=True)
class Outcome:
    """What a command line gave."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Tool:
    """A build of etvk-guard-pte."""

    machine: str
    path: Path

    @property
    def command(self) -> list[str]:
        """How to run it here."""
        native = self.machine == platform.machine()
        return [str(self.path)] if native else [EMULATORS[self.machine], str(self.path)]

    def __call__(self, *args: object) -> Outcome:
        """Run it to the end."""
        command = [*self.command, *map(str, args)]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def damaged(data: bytes, count: int) -> Iterator[bytes]:
    """`count` each of: cut off, words replaced by ones that break checks, bytes replaced."""
    dice = random.Random(len(data))
    for _ in range(count):
        yield data[: dice.randrange(1, len(data))]
        for edit in (_words, _bytes):
            made = bytearray(data)
            for _ in range(dice.randint(1, 3)):
                edit(made, dice)
            yield bytes(made)


def _words(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data) // 4) * 4
    data[start : start + 4] = dice.choice(WORDS).to_bytes(4, "little")


def _bytes(data: bytearray, dice: random.Random) -> None:
    start = dice.randrange(len(data))
    data[start] = dice.randrange(256)
