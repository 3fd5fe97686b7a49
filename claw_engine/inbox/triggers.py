"""Words that begin a session anew besides /new and /reset: `session.resetTriggers`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from claw_engine.inbox.model import InboundMessage

_RESET = "/new"


def with_trigger(message: InboundMessage, triggers: Iterable[str]) -> InboundMessage:
    """A message that is a trigger, or begins with one as a word, as the /new it stands for.

    Upper and lower case are the same. What follows the trigger stays (gateway digest §3.8).
    """
    text = message.text.strip()
    for trigger in triggers:
        rest = text[len(trigger) :]
        whole = not rest or rest[0].isspace()
        if trigger and whole and text.casefold().startswith(trigger.casefold()):
            known = trigger.casefold() in (_RESET, "/reset")  # commands of their own
            return message if known else replace(message, text=f"{_RESET}{rest}")
    return message
