"""The permission mode: what it makes of a policy, how long it lasts, what a restart keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_engine.approvals.modes import FULL_MS, ModeSwitch
from claw_engine.approvals.policy import Ask, ExecPolicy, PermissionMode, Security
from claw_engine.errors import InvalidRequest
from claw_engine.events import Event, Notice
from claw_engine.storage.errors import StateDiskFull
from tests.support.fakes import FakeClock, FaultyDisk, fake_world

LOOK, GUARDED, WORKSPACE, FULL = PermissionMode


@pytest.mark.parametrize("security", list(Security))
@pytest.mark.parametrize("ask", list(Ask))
@pytest.mark.parametrize("mode", list(PermissionMode))
def test_policy_under_a_mode(security: Security, ask: Ask, mode: PermissionMode) -> None:
    policy = ExecPolicy(security, ask)
    under = policy.under(mode)
    if mode is LOOK or security is Security.DENY:
        assert under.security is Security.DENY
    elif mode is FULL:
        assert (under.security, under.ask) == (Security.FULL, Ask.OFF)
    else:
        assert under == policy


class Told(list[Event]):
    def titles(self) -> list[str]:
        return [event.title for event in self if isinstance(event, Notice) and event.title]


async def switch_on(path: Path, told: Told, configured: str = "guarded") -> ModeSwitch:
    made = ModeSwitch(WORLD, told.append, path / "mode.json")
    await made.load(configured)
    return made


WORLD = fake_world()


async def test_full_ends_by_itself(tmp_path: Path) -> None:
    told, clock = Told(), WORLD.clock
    assert isinstance(clock, FakeClock)
    switch = await switch_on(tmp_path, told, "look")
    await switch.switch(FULL, 10 * FULL_MS)
    assert switch.full_until_ms == clock.now_ms() + FULL_MS
    await clock.advance(FULL_MS / 1000 - 1)
    assert switch.mode() is FULL
    await clock.advance(2)
    assert switch.mode() is LOOK
    assert switch.full_until_ms is None
    assert told.titles() == ["Permission mode full.", "Permission mode full is over: look again."]


async def test_switching_away_stops_the_clock(tmp_path: Path) -> None:
    told, clock = Told(), WORLD.clock
    assert isinstance(clock, FakeClock)
    switch = await switch_on(tmp_path, told)
    await switch.switch(FULL)
    await switch.switch(WORKSPACE)
    await clock.advance(2 * FULL_MS / 1000)
    assert switch.mode() is WORKSPACE
    assert "over" not in " ".join(told.titles())


@pytest.mark.parametrize(("mode", "after"), [(LOOK, LOOK), (WORKSPACE, WORKSPACE), (FULL, GUARDED)])
async def test_what_a_restart_keeps(
    tmp_path: Path, mode: PermissionMode, after: PermissionMode
) -> None:
    first = await switch_on(tmp_path, Told())
    await first.switch(mode)
    first.close()
    assert (await switch_on(tmp_path, Told())).mode() is after


async def test_a_damaged_file_is_the_configured_mode(tmp_path: Path) -> None:
    (tmp_path / "mode.json").write_text('{"mode": "everything"}')
    assert (await switch_on(tmp_path, Told(), "look")).mode() is LOOK


async def test_full_is_no_lasting_choice(tmp_path: Path) -> None:
    (tmp_path / "mode.json").write_text('{"mode": "full"}')
    switch = await switch_on(tmp_path, Told(), "full")
    assert switch.mode() is GUARDED


async def test_a_changed_configuration_counts(tmp_path: Path) -> None:
    switch = await switch_on(tmp_path, Told())
    await switch.switch(WORKSPACE)
    switch.configure("guarded")
    assert switch.mode() is WORKSPACE
    switch.configure("look")
    assert switch.mode() is LOOK


async def test_a_time_belongs_to_full(tmp_path: Path) -> None:
    switch = await switch_on(tmp_path, Told())
    with pytest.raises(InvalidRequest):
        await switch.switch(LOOK, 1000)


@pytest.mark.parametrize(
    ("before", "wanted", "holds", "after_restart"),
    [
        (GUARDED, WORKSPACE, GUARDED, GUARDED),  # said to have failed: nothing wider holds
        (LOOK, GUARDED, LOOK, LOOK),
        (WORKSPACE, LOOK, LOOK, WORKSPACE),  # stricter: at once, whatever the disk does
        (FULL, GUARDED, GUARDED, GUARDED),
    ],
)
async def test_on_a_full_disk(
    tmp_path: Path,
    before: PermissionMode,
    wanted: PermissionMode,
    holds: PermissionMode,
    after_restart: PermissionMode,
) -> None:
    disk, told = FaultyDisk(), Told()
    switch = ModeSwitch(fake_world(disk=disk), told.append, tmp_path / "mode.json")
    await switch.load("guarded")
    await switch.switch(before)
    said = len(told.titles())
    disk.fail_next()
    with pytest.raises(StateDiskFull):
        await switch.switch(wanted)
    assert switch.mode() is holds
    assert len(told.titles()) == said + (holds is wanted)
    switch.close()
    assert (await switch_on(tmp_path, Told())).mode() is after_restart
