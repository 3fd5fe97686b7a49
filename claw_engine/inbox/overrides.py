"""What a session's entry changes about the next run: model and thinking level. Pure.

Fields in OpenClaw's spelling: `thinkingLevel`, `providerOverride`, `modelOverride`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from claw_engine.agent.briefing import REASONING_FIELD
from claw_engine.inbox.model import InboundMessage
from claw_engine.sessions.entry import SessionEntry

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

THINKING = ("off", "minimal", "low", "medium", "high", "xhigh")


def model_override(entry: SessionEntry | None) -> str:
    """`provider/model` that the session asks for, or ""."""
    if entry is None:
        return ""
    provider, model = entry.text("providerOverride"), entry.text("modelOverride")
    if not model:
        return ""
    return f"{provider}/{model}" if provider else model


def settings_for(settings: Settings, entry: SessionEntry | None) -> Settings:
    """The settings a run of this session pins."""
    name = model_override(entry)
    if not name:
        return settings
    defaults = settings.agents.defaults
    model = replace(defaults.model, primary=name)
    agents = replace(settings.agents, defaults=replace(defaults, model=model))
    return replace(settings, agents=agents)


def message_for(message: InboundMessage, entry: SessionEntry | None) -> InboundMessage:
    """The message with the session's thinking level, unless it brings its own, and with what the
    session shows of it."""
    if entry is None:
        return message
    shown = entry.text(REASONING_FIELD)
    if shown in ("on", "stream"):
        message = replace(message, extra={**message.extra, REASONING_FIELD: shown})
    if message.thinking is not None:
        return message
    level = entry.text("thinkingLevel")
    return replace(message, thinking=level) if level in THINKING else message
