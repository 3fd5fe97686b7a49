"""The root of every error this project raises on purpose.

    ClawError
    ├── (each room derives its own in its errors.py or module)
    └── …

An error carries what a person needs: a title that says what and where, and a hint that says how
to mend it. Nothing here knows a room.
"""

from __future__ import annotations

from collections.abc import Mapping

TYPE_CHECKING = False  # `typing` costs as much as a fifteenth of `claw status`
if TYPE_CHECKING:
    from typing import ClassVar


class ClawError(Exception):
    """An expected failure with words for the operator.

    `title` says what failed and where in one sentence, `hint` how to mend it, `details` holds
    machine-readable values for the wire. `code` is the wire error code (one of OpenClaw's closed
    list: NOT_LINKED, NOT_PAIRED, AGENT_TIMEOUT, INVALID_REQUEST, UNAVAILABLE).
    """

    code: ClassVar[str] = "UNAVAILABLE"
    retryable: bool = False

    def __init__(
        self,
        title: str,
        *,
        hint: str = "",
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(title)
        self.title = title
        self.hint = hint
        self.details: Mapping[str, object] = details or {}

    def sentence(self) -> str:
        """Title and hint as one line for a terminal or a log."""
        return f"{self.title} {self.hint}".strip()


class InvalidRequest(ClawError):
    """The caller asked for something that cannot be: wrong parameter, unknown name."""

    code: ClassVar[str] = "INVALID_REQUEST"
