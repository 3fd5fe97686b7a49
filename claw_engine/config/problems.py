"""What can be wrong with a configuration, in words an operator can act on.

Values only: nothing here reads a file or knows a section.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from claw_engine.errors import ClawError

KeyPath = tuple[str | int, ...]


class ProblemKind(StrEnum):
    """Why a place in the file is reported."""

    SYNTAX = "syntax"
    INCLUDE = "include"
    UNKNOWN_KEY = "unknown-key"
    WRONG_TYPE = "wrong-type"
    NOT_FINITE = "not-finite"
    MISSING_VARIABLE = "missing-variable"
    UNSUPPORTED = "unsupported"
    IDLE_KEY = "idle-key"
    IGNORED_NAME = "ignored-name"
    STORAGE = "storage"


_FATAL = frozenset({ProblemKind.SYNTAX, ProblemKind.INCLUDE, ProblemKind.WRONG_TYPE})
_WARNINGS = frozenset({ProblemKind.UNKNOWN_KEY, ProblemKind.IGNORED_NAME, ProblemKind.STORAGE})


class Problem(Struct, frozen=True):
    """One finding. `line` and `column` count from 1; 0 when the place is not in a file.

    `fatal` means that the file as a whole is not used; otherwise only the named key is set aside
    (or, for an unknown key, merely reported).
    """

    kind: ProblemKind
    path: KeyPath
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    nearest: str | None = None
    fatal: bool = False

    @property
    def severity(self) -> str:
        """`note`, `warning` or `error`."""
        if self.kind is ProblemKind.IDLE_KEY:
            return "note"
        return "warning" if self.kind in _WARNINGS and not self.fatal else "error"

    def sentence(self) -> str:
        """`file:line:column: path: message` on one line, leaving out what is not known."""
        place = self.file
        if self.line:
            place = f"{place}:{self.line}:{self.column}"
        parts = [part for part in (place, format_path(self.path), self.message) if part]
        return ": ".join(parts)


class Banner(Struct, frozen=True):
    """A sticky notice: the configuration in force is not the one in the file.

    `diff` is a redacted unified diff from the configuration in force to the file.
    """

    code: str
    title: str
    text: str
    hint: str
    file: str
    line: int = 0
    column: int = 0
    diff: str = ""


class ConfigError(ClawError):
    """The configuration cannot be used and nothing stands in for it. `problems` says why."""

    code: ClassVar[str] = "UNAVAILABLE"

    def __init__(self, title: str, *, hint: str, problems: Sequence[Problem]) -> None:
        super().__init__(
            title, hint=hint, details={"problems": [problem.sentence() for problem in problems]}
        )
        self.problems = tuple(problems)


def is_fatal(kind: ProblemKind) -> bool:
    """Whether a finding of this kind makes the whole file unusable."""
    return kind in _FATAL


def format_path(path: KeyPath) -> str:
    """`agents.list[0].thinkng`, the way OpenClaw writes key paths."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        else:
            out += f".{step}" if out else step
    return out
