"""The policy as a value: how strict, when to ask, and which rules the operator made.

Pure. Words, defaults and the "stricter wins" arithmetic are OpenClaw 2026.2.26's exec settings;
a permission mode is ours: one more word that makes such a value stricter or looser.
"""

from __future__ import annotations

import shlex
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.approvals.arguments import words_of
from claw_engine.approvals.safe_bins import SafeBins


class Security(StrEnum):
    """What may run at all; from strict to loose."""

    DENY = "deny"
    ALLOWLIST = "allowlist"
    FULL = "full"


class Ask(StrEnum):
    """When a person is asked; from never to each time."""

    OFF = "off"
    ON_MISS = "on-miss"
    ALWAYS = "always"


class PermissionMode(StrEnum):
    """One word for the whole machine, chosen by the operator; the state directory stays closed."""

    LOOK = "look"
    """No commands, no writes."""
    GUARDED = "guarded"
    """Writes in the workspace are free; commands that no rule covers ask, so does all else."""
    WORKSPACE = "workspace"
    """Commands run unasked when confined to the workspace; else as guarded."""
    FULL = "full"
    """Nothing asks, for a limited time."""


class Rule(Struct, frozen=True):
    """An allowlist entry.

    `pattern` is a real path or a glob over real paths. `content_hash` (sha256 hex) binds a
    literal pattern to one content of its file. `arg_pattern` limits it to matching arguments (see
    arguments.py; None = any). `last_resolved` is the real path that the rule
    allowed when it was used last. `agent_id` says whose entry it is (`*` = every agent's).
    """

    id: str
    pattern: str
    content_hash: str | None = None
    last_used_ms: int | None = None
    last_command: str | None = None
    last_resolved: str | None = None
    agent_id: str = "main"
    arg_pattern: str | None = None

    @property
    def is_glob(self) -> bool:
        return "*" in self.pattern or "?" in self.pattern

    @property
    def label(self) -> str:
        """The rule as a person reads it: its pattern, with arguments when only those count."""
        if self.arg_pattern is None:
            return self.pattern
        exact = words_of(self.arg_pattern)
        if exact is None:
            return f"{self.pattern} with arguments matching {self.arg_pattern!r}"
        return labelled(self.pattern, exact)


def labelled(pattern: str, arguments: tuple[str, ...]) -> str:
    """A rule for exactly these arguments, as a person reads it."""
    return f"{pattern} {shlex.join(arguments)}" if arguments else f"{pattern} without arguments"


class ExecPolicy(Struct, frozen=True):
    """What `evaluate` decides by. The default is a fresh install: nothing runs unasked."""

    security: Security = Security.ALLOWLIST
    ask: Ask = Ask.ON_MISS
    ask_fallback: Security = Security.DENY
    rules: tuple[Rule, ...] = ()
    safe_bins: SafeBins | None = None

    @property
    def firm(self) -> bool:
        """Whether a command runs by no other way than the operator's yes, if at all."""
        return self.security is Security.DENY or self.ask is Ask.ALWAYS

    def tightened(self, security: str | None = None, ask: str | None = None) -> ExecPolicy:
        """The stricter of this policy and a wish (a configured value or a tool parameter).

        Raises ValueError on a word that is not one of the policy's.
        """
        return replace(
            self,
            security=min(self.security, Security(security or self.security), key=_SECURITY.index),
            ask=max(self.ask, Ask(ask or self.ask), key=_ASK.index),
        )

    def under(self, mode: PermissionMode) -> ExecPolicy:
        """This policy in a permission mode.

        `look` runs nothing; `full` asks nothing, but what the policy refuses stays refused.
        `workspace` loosens only confined commands, which is not the policy's business.
        """
        if mode is PermissionMode.LOOK:
            return replace(self, security=Security.DENY)
        if mode is PermissionMode.FULL and self.security is not Security.DENY:
            return replace(self, security=Security.FULL, ask=Ask.OFF)
        return self


_SECURITY = tuple(Security)
_ASK = tuple(Ask)
