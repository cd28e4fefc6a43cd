# SPDX-License-Identifier: Apache-2.0
"""The one exception of the package, and where in a program something is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EtvkGuardError", "Where", "WhereRow"]

WhereRow = tuple[str | None, int | None, int | None, str | None, str | None, int | None]


@dataclass(frozen=True)
class Where:
    """Where in a program something is. None where a field does not apply.

    Attributes:
        method: name of the ExecutionPlan.
        delegate: index in the plan's delegates.
        op_index: index in the VkGraph's chain.
        op: the op's name, such as "et_vk.rms_norm.default".
        argument: the argument's name in the contract, such as "weight".
        offset: bytes from the start of the file.
    """

    method: str | None = None
    delegate: int | None = None
    op_index: int | None = None
    op: str | None = None
    argument: str | None = None
    offset: int | None = None

    def __str__(self) -> str:
        """As "method 'forward', delegate 0, op 3 (et_vk.rms_norm.default), argument 'weight'"."""
        parts = []
        if self.method is not None:
            parts.append(f"method '{self.method}'")
        if self.delegate is not None:
            parts.append(f"delegate {self.delegate}")
        if self.op_index is not None:
            parts.append(f"op {self.op_index}" + (f" ({self.op})" if self.op else ""))
        if self.argument is not None:
            parts.append(f"argument '{self.argument}'")
        if self.offset is not None:
            parts.append(f"byte {self.offset}")
        return ", ".join(parts)


class EtvkGuardError(Exception):
    """A file cannot be read, repaired or written.

    Attributes:
        code: the error's code, such as "EG005"; `etvk-guard findings` lists those of files.
        name: its name, such as "truncated".
        message: what is wrong, where, and what to do.
        where: where in the program.
        problem: only what is wrong.
        advice: only what to do.
    """

    def __init__(
        self,
        code: str,
        name: str,
        problem: str,
        where: Where | WhereRow | None = None,
        advice: str = "",
    ) -> None:
        """Put the parts together to `message`."""
        self.code = code
        self.name = name
        self.problem = problem
        self.where = where if isinstance(where, Where) else Where(*where or ())
        self.advice = advice
        self.file: str | None = None
        super().__init__(code, name, problem, self.where, advice)

    @property
    def message(self) -> str:
        """What is wrong, where, and what to do."""
        place = str(self.where)
        prefix = f"{self.file}: " if self.file else ""
        sentence = prefix + self.problem + (f" ({place})" if place else "")
        return f"{sentence}. {self.advice}" if self.advice else sentence

    def __str__(self) -> str:
        """As "EG005 truncated: ..."."""
        return f"{self.code} {self.name}: {self.message}"
