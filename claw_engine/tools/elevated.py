"""Who may have a command run outside the sandbox, and whether it asks then. Pure.

Gates, levels and entry forms: OpenClaw 2026.2.26 (gateway digest §5.11). Ours: the operator's own
doors need no entry, and text that nobody who may give orders wrote never gets it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.tools.policy.circumstances import EXTERNAL_FIELD

if TYPE_CHECKING:
    from claw_engine.config.sections.box import ElevatedSettings

OPERATORS = frozenset({"console", "cli"})
"""Sources that proved to be the operator's own; the door checks that."""

_LEVELS = {"on": "ask", "ask": "ask", "full": "full"}
_PLAIN = ("id", "from", "e164")
"""What an entry without a prefix is compared with: names can be chosen by anyone."""


class Sender(Struct, frozen=True):
    """Who wrote a message, as the channel tells it; empty fields are not known."""

    id: str = ""
    sender: str = ""
    e164: str = ""
    name: str = ""
    username: str = ""
    tag: str = ""

    def field(self, prefix: str) -> str:
        return self.sender if prefix == "from" else str(getattr(self, prefix, ""))


def sender_of(extra: Mapping[str, object]) -> Sender:
    """From a message's `extra`."""
    names = {"id": "senderId", "sender": "from", "e164": "senderE164", "name": "senderName",
             "username": "senderUsername", "tag": "senderTag"}  # fmt: skip
    return Sender(**{name: str(extra.get(key) or "") for name, key in names.items()})


def listed(entries: Iterable[str | int], sender: Sender) -> bool:
    """Whether an allow list names the sender: `*`, `PREFIX:value`, or a bare id or number."""
    for entry in entries:
        text = str(entry).strip()
        prefix, found, value = text.partition(":")
        if text == "*":
            return True
        if found and prefix in (*_PLAIN, "name", "username", "tag"):
            wanted = [(prefix, value)]
        else:
            wanted = [(plain, text) for plain in _PLAIN]
        if any(value and _same(sender.field(name), value) for name, value in wanted):
            return True
    return False


def level(
    settings: ElevatedSettings,
    *,
    chosen: str,
    source: str,
    extra: Mapping[str, object],
) -> str:
    """off, ask or full: `chosen` is the session's word, else the default of the configuration."""
    if not settings.enabled or extra.get(EXTERNAL_FIELD):
        return "off"
    allowed = settings.allow_from.get(source, ())
    if source not in OPERATORS and not listed(allowed, sender_of(extra)):
        return "off"
    return _LEVELS.get(chosen, "off")


def _same(known: str, wanted: str) -> bool:
    return known.strip().lower().lstrip("@") == wanted.strip().lower().lstrip("@")
