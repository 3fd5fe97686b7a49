"""Settings of what happens to messages that arrive during a run."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from claw_engine.config.sections.base import Amount, Count, Section

Mode = Literal[
    "steer", "followup", "collect", "steer-backlog", "steer+backlog", "queue", "interrupt"
]


class QueueSettings(Section, frozen=True):
    """`messages.queue`; `cap` in messages."""

    mode: Mode = "collect"
    by_channel: dict[str, Mode] = field(default_factory=dict)
    debounce_ms: Amount = 1000
    debounce_ms_by_channel: dict[str, Amount] = field(default_factory=dict)
    cap: Count = 20
    drop: Literal["old", "new", "summarize"] = "summarize"


class MessagesSettings(Section, frozen=True):
    queue: QueueSettings = QueueSettings()
