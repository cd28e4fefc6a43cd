# SPDX-License-Identifier: Apache-2.0
"""The errors of the reference interpreter: codes EG401 to EG408, and what makes them.

What stock does to a broken prepack contract is raised with the code of the finding (EG101, ...), so
that a caller can compare it with what `etvk_guard.check` says of the same file.
"""

from __future__ import annotations

from typing import Final

from etvk_guard import contract
from etvk_guard.pte import EtvkGuardError, Where

UNSUPPORTED_OP: Final = "EG401"
UNSUPPORTED_BACKEND: Final = "EG402"
BAD_INPUT: Final = "EG403"
NO_METHOD: Final = "EG404"
BUDGET: Final = "EG405"
OP_FAILED: Final = "EG406"
STOCK_ABORT: Final = "EG407"
BAD_PROGRAM: Final = "EG408"

# What torch and Python raise where operands do not fit.
FAILURES: Final = (
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    OverflowError,
    ZeroDivisionError,
)

NAMES: Final = {
    UNSUPPORTED_OP: "reference-unsupported-op",
    UNSUPPORTED_BACKEND: "reference-unsupported-backend",
    BAD_INPUT: "reference-bad-input",
    NO_METHOD: "reference-no-method",
    BUDGET: "reference-budget",
    OP_FAILED: "reference-op-failed",
    STOCK_ABORT: "reference-stock-abort",
    BAD_PROGRAM: "reference-bad-program",
}

_ADVICE: Final = {
    UNSUPPORTED_OP: "Run the program on a real delegate, or ask for the op.",
    UNSUPPORTED_BACKEND: "Lower the model for Vulkan only.",
    BAD_INPUT: "Give the inputs that the method was exported with.",
    NO_METHOD: "Name one of the program's methods.",
    BUDGET: "The interpreter is for small programs; a loop may have no end.",
    OP_FAILED: "If a real delegate runs the program, this is a defect of etvk-guard.",
    STOCK_ABORT: "Lower the model again; a stock delegate does not run it.",
    BAD_PROGRAM: "Export the program again; the file was damaged or edited.",
}


class InterpreterError(EtvkGuardError):
    """The interpreter cannot run this program, or a stock delegate would not."""


class StockAbortError(InterpreterError):
    """A stock delegate throws here, while it loads or runs the method.

    `code` is that of the finding for a broken prepack contract, and EG407 for any other check of
    the delegate.
    """


def error(code: str, message: str, where: Where | None = None) -> InterpreterError:
    """The error with this code of the list above."""
    return InterpreterError(code, NAMES[code], message, where, _ADVICE[code])


def stock_abort(message: str, where: Where, finding: str | None = None) -> StockAbortError:
    """What to raise where stock aborts; `finding` is the code of a broken prepack contract."""
    if finding is None:
        return StockAbortError(
            STOCK_ABORT, NAMES[STOCK_ABORT], message, where, _ADVICE[STOCK_ABORT]
        )
    info = contract.finding(finding)
    return StockAbortError(finding, info.name, message, where, info.advice)


def missing_data(key: str, where: Where) -> InterpreterError:
    """A constant is neither in the program file nor in `data` (EG014)."""
    info = contract.error("EG014")
    message = f"the constant {key!r} is neither in the program nor in `data`"
    return InterpreterError("EG014", info.name, message, where, "Give it in `data`.")
