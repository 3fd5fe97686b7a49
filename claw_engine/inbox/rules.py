"""Which queue rules hold for a message: its own words, its session, its channel, the settings.

Pure; order of precedence: gateway digest §4.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from claw_engine.inbox.model import InboundMessage
from claw_engine.inbox.queue_directive import entry_fields, find, override_of_entry
from claw_engine.inbox.queue_modes import QueueMode, QueueRules, drop_of, mode_of
from claw_engine.sessions.entry import SessionEntry

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings


def channel_of(message: InboundMessage) -> str:
    """The channel a message came by; its source if it names none."""
    channel = message.extra.get("channel")
    return channel if isinstance(channel, str) and channel else message.source


def base_rules(settings: Settings, channel: str) -> QueueRules:
    """What the configuration says for a channel."""
    queue = settings.messages.queue
    mode = mode_of(queue.by_channel.get(channel) or queue.mode)
    drop = drop_of(queue.drop)
    assert drop is not None
    return QueueRules(
        mode or QueueMode.COLLECT,
        queue.debounce_ms_by_channel.get(channel, queue.debounce_ms),
        queue.cap,
        drop,
    )


def session_rules(settings: Settings, channel: str, entry: SessionEntry | None) -> QueueRules:
    """What holds in a session for messages that say nothing else."""
    rules = base_rules(settings, channel)
    return override_of_entry(entry.raw).over(rules) if entry is not None else rules


def rules_for(
    settings: Settings, message: InboundMessage, entry: SessionEntry | None
) -> QueueRules:
    """What holds for this message."""
    rules = session_rules(settings, channel_of(message), entry)
    return override_of_entry(message.extra).over(rules)


def without_directive(message: InboundMessage) -> InboundMessage:
    """The message with an inline `/queue …` taken out of its text and noted in `extra`.

    A directive that stands alone, or names nothing, is left where it is.
    """
    directive = find(message.text)
    if directive is None or directive.bare or directive.bad or not directive.rest:
        return message
    fields = {k: v for k, v in entry_fields(directive).items() if v is not None}
    return replace(message, text=directive.rest, extra={**message.extra, **fields})
