"""Settings of what happens to messages that arrive during a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from claw_engine.config.sections.base import Amount, Count, Section, defaults

Mode = Literal[
    "steer", "followup", "collect", "steer-backlog", "steer+backlog", "queue", "interrupt"
]


class QueueSettings(Section):
    """`messages.queue`; `cap` in messages."""

    mode: Mode = "collect"
    by_channel: dict[str, Mode] = Field(default_factory=dict)
    debounce_ms: Amount = 1000
    debounce_ms_by_channel: dict[str, Amount] = Field(default_factory=dict)
    cap: Count = 20
    drop: Literal["old", "new", "summarize"] = "summarize"


class MessagesSettings(Section):
    queue: QueueSettings = defaults(QueueSettings)
