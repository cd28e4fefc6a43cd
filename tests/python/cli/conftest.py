# SPDX-License-Identifier: Apache-2.0
"""Running the command line inside the test's process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from etvk_guard.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=pytest.fail)  # NaN and the like are no JSON


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Call it with arguments to get exit code, stdout and stderr."""

    def call(*args: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["etvk-guard", *map(str, args)])
        monkeypatch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit) as exited:
            main()
        code = exited.value.code
        assert isinstance(code, int)
        return Outcome(code, *capsys.readouterr())

    return call
