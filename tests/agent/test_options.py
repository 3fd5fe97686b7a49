"""Where an agent works, how long it may take, and what time it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_engine.agent.options import TIMEOUT_FIELD, options
from claw_engine.agent.record import stamped
from claw_engine.config.sections.agents import AgentDefaults, AgentEntry, AgentsSettings
from claw_engine.config.settings import Settings
from claw_engine.inbox.model import InboundMessage
from claw_engine.paths import StateDir
from claw_engine.sessions.routing import workspace_of

STATE = StateDir(Path("/state"))


def settings(**defaults: object) -> Settings:
    own = AgentEntry(id="own", workspace="/own")
    main = AgentEntry(id="main")
    agents = AgentsSettings(defaults=AgentDefaults(**defaults), list=(main, own))
    return Settings(agents=agents)


@pytest.mark.parametrize(
    ("agent", "default", "path"),
    [
        ("main", None, "/state/workspace"),
        ("main", "/shared", "/shared"),
        ("main", "relative", "/state/relative"),
        ("other", None, "/state/workspace-other"),
        ("other", "/shared", "/state/workspace-other"),
        ("own", "/shared", "/own"),
    ],
)
def test_workspaces(agent: str, default: str | None, path: str) -> None:
    assert workspace_of(settings(workspace=default), STATE, agent) == Path(path)


@pytest.mark.parametrize(
    ("asked", "seconds"), [(None, 600), (30, 30), (0, 0), (-1, 600), (True, 600), ("9", 600)]
)
def test_a_message_may_bring_its_own_time_limit(asked: object, seconds: float) -> None:
    extra = {} if asked is None else {TIMEOUT_FIELD: asked}
    message = InboundMessage("i", "k", "main", "t", "cli", 0, "high", extra)
    chosen = options(settings(), "main", STATE, message)
    assert chosen.timeout_s == seconds
    assert chosen.thinking == "high"


@pytest.mark.parametrize(
    ("zone", "stamp"),
    [
        ("UTC", "[Mon 2026-11-30 08:40 UTC] hi"),
        ("Europe/Berlin", "[Mon 2026-11-30 09:40 CET] hi"),
        ("Asia/Tokyo", "[Mon 2026-11-30 17:40 JST] hi"),
        ("No/Where", "[Mon 2026-11-30 08:40 UTC] hi"),
    ],
)
def test_stamps(zone: str, stamp: str) -> None:
    assert stamped("hi", 1_796_028_000_000, zone) == stamp
