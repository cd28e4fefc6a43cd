# SPDX-License-Identifier: Apache-2.0
"""The errors of `etvk_guard.runtime`: codes EG501 to EG507."""

from __future__ import annotations

from typing import Final

from etvk_guard.pte import EtvkGuardError

__all__ = ["RuntimeFailedError", "error"]

NO_EXECUTORCH: Final = "EG501"
NO_DELEGATE: Final = "EG502"
BACKEND_LOAD: Final = "EG503"
NO_BUILDER: Final = "EG504"
BAD_INPUT: Final = "EG505"
NO_METHOD: Final = "EG506"
FAILED: Final = "EG507"

_NAMES: Final = {
    NO_EXECUTORCH: "runtime-no-executorch",
    NO_DELEGATE: "runtime-no-delegate",
    BACKEND_LOAD: "runtime-backend-load",
    NO_BUILDER: "runtime-no-builder",
    BAD_INPUT: "runtime-bad-input",
    NO_METHOD: "runtime-no-method",
    FAILED: "runtime-failed",
}

_ADVICE: Final = {
    NO_EXECUTORCH: "etvk-guard's extra `lowering` brings it.",
    NO_DELEGATE: "`etvk-guard doctor` says what is missing.",
    BACKEND_LOAD: "ETVK_GUARD_BACKEND, or the argument, names a delegate library that was built "
    "against the executorch that is installed.",
    NO_BUILDER: "ETVK_GUARD_BUILDER names the builder library, built against the executorch that "
    "is installed (docs/runtime.md); unset, and with guard='repair', programs run repaired.",
    BAD_INPUT: "Give the inputs that the method was exported with.",
    NO_METHOD: "Name one of the program's methods.",
    FAILED: "`etvk-guard check` says whether the program breaks the prepack contract.",
}


class RuntimeFailedError(EtvkGuardError):
    """The runtime, its Vulkan delegate or a program in it is not there, or failed."""


def error(code: str, problem: str) -> RuntimeFailedError:
    """The error with this code of the list above."""
    return RuntimeFailedError(code, _NAMES[code], problem, None, _ADVICE[code])
