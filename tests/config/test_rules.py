"""What a changed key asks for, and what the four modes make of it."""

from __future__ import annotations

import pytest

from claw_engine.config.problems import KeyPath
from claw_engine.config.rules import Effect, ReloadMode, effect_of, plan


@pytest.mark.parametrize(
    ("path", "effect"),
    [
        ("gateway.port", Effect.RESTART),
        ("gateway.remote.url", Effect.NONE),
        ("gateway.reload.mode", Effect.NONE),
        ("gateway.reloading", Effect.RESTART),
        ("hooks.gmail.account", Effect.HOT),
        ("agents.defaults.heartbeat.every", Effect.HOT),
        ("agents.defaults.model", Effect.NONE),
        ("cron.maxConcurrentRuns", Effect.HOT),
        ("channels.telegram.botToken", Effect.HOT),
        ("claw.permissionMode", Effect.HOT),
        ("claw.durability", Effect.RESTART),
        ("plugins.allow", Effect.RESTART),
        ("env.FOO", Effect.RESTART),
        ("approvals.exec", Effect.RESTART),
        ("no.such.key", Effect.RESTART),
    ],
)
def test_the_first_prefix_that_matches_decides(path: str, effect: Effect) -> None:
    assert effect_of(tuple(path.split("."))) is effect


HOT: KeyPath = ("cron", "maxConcurrentRuns")
COLD: KeyPath = ("gateway", "port")


@pytest.mark.parametrize(
    ("mode", "changed", "applied", "waiting", "restart", "hold"),
    [
        ("hybrid", (HOT,), (HOT,), (), False, False),
        ("hybrid", (HOT, COLD), (HOT,), (COLD,), True, False),
        ("hot", (HOT, COLD), (HOT,), (COLD,), False, False),
        ("restart", (HOT,), (), (HOT,), True, True),
        ("off", (HOT, COLD), (), (HOT, COLD), False, True),
        ("off", (), (), (), False, False),
    ],
)
def test_modes(
    mode: ReloadMode,
    changed: tuple[KeyPath, ...],
    applied: tuple[KeyPath, ...],
    waiting: tuple[KeyPath, ...],
    restart: bool,
    hold: bool,
) -> None:
    found = plan(changed, mode)
    assert (found.applied, found.waiting) == (applied, waiting)
    assert (found.restart, found.hold) == (restart, hold)
