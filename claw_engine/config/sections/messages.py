"""Settings of what happens to messages that arrive during a run."""

from __future__ import annotations

from typing import Literal

from claw_engine.config.sections.base import Amount, Count, Section, defaults


class QueueSettings(Section):
    """`messages.queue`; `cap` in messages."""

    mode: Literal[
        "steer", "followup", "collect", "steer-backlog", "steer+backlog", "queue", "interrupt"
    ] = "collect"
    debounce_ms: Amount = 1000
    cap: Count = 20
    drop: Literal["old", "new", "summarize"] = "summarize"


class MessagesSettings(Section):
    queue: QueueSettings = defaults(QueueSettings)
