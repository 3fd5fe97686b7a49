"""What is different in a run that answers words from outside: nobody with a say wrote them.

Pure; where they came from is told by whoever took them in (policy/circumstances.py).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from claw_engine.agent.prompt.fence import Fencer
from claw_engine.approvals.policy import PermissionMode

Mode = Callable[[], PermissionMode]


class Outside(Struct, frozen=True):
    """`origin` is a word for the source; "" = somebody asked us, nothing is different."""

    origin: str

    def __bool__(self) -> bool:
        return bool(self.origin)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the operator should know when asked."""
        return (f"triggered by external content ({self.origin})",) if self.origin else ()

    def said(self, text: str, fencer: Fencer, run_id: str) -> str:
        """The message as the model reads it."""
        return fencer.wrap(text, self.origin, f"message:{run_id}") if self.origin else text

    def mode(self, mode: Mode) -> Mode:
        """The operator's looser modes are for what they asked for themselves."""
        if not self.origin:
            return mode

        def strict() -> PermissionMode:
            now = mode()
            return now if now is PermissionMode.LOOK else PermissionMode.GUARDED

        return strict
