from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from claw_engine.storage.errors import StateDiskError
from claw_engine.storage.sqlite import read_only
from claw_engine.usage import schema
from claw_engine.usage.meter import Over, Ticket
from tests.support.fakes import FakeClock, fake_world
from tests.usage.samples import Desk, caller, spent

HOUR = 3600


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    await made.meter.close()


async def test_without_a_budget_nothing_is_read(desk: Desk, tmp_path: Path) -> None:
    assert isinstance(await desk.admit(10**9), Ticket)
    assert not (tmp_path / "usage").exists()


async def test_a_call_that_does_not_fit_is_not_let_through(desk: Desk) -> None:
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    await desk.call(600)
    found = await desk.admit(500)
    assert isinstance(found, Over)
    assert (found.standing.spent, found.more) == (600, 500)
    assert isinstance(await desk.admit(400), Ticket)


async def test_a_warning_is_told_once_a_share(desk: Desk) -> None:
    desk.limit("day", tokens=1000, action="warn", warn_at=(0.5, 0.8))
    for _ in range(20):
        await desk.call(100)
    assert len(desk.told) == 3
    assert "to 50%" in desk.told[0]
    assert "to 80%" in desk.told[1]
    assert "used up" in desk.told[2]
    assert desk.board == ["budget-day-tokens"] * 3


async def test_one_leap_over_several_shares_is_one_warning(desk: Desk) -> None:
    desk.limit("session", tokens=1000, action="warn", warn_at=(0.5, 0.8))
    await desk.call(950)
    await desk.call(10)
    assert len(desk.told) == 1


async def test_calls_of_two_sessions_at_once_share_the_days_budget(desk: Desk) -> None:
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    first, second = await asyncio.gather(
        desk.admit(700, caller("s1")), desk.admit(700, caller("s2"))
    )
    assert isinstance(first, Ticket)
    assert isinstance(second, Over)  # the first is under way and counts
    assert second.standing.under_way == 700
    desk.meter.settle(first, None)  # refused by its provider: it cost nothing
    assert isinstance(await desk.admit(700, caller("s2")), Ticket)


async def test_sessions_have_a_budget_each(desk: Desk) -> None:
    desk.limit("session", tokens=1000, action="stop", warn_at=())
    await desk.call(900, caller("s1"))
    assert isinstance(await desk.admit(200, caller("s1")), Over)
    assert isinstance(await desk.admit(200, caller("s2")), Ticket)
    # Begun anew, the same key has another id.
    assert isinstance(await desk.admit(200, caller("s3")), Ticket)


async def test_a_budget_counts_what_earlier_engines_spent(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    await first.call(900)
    await first.meter.close()
    second = Desk(tmp_path, first.world)
    for scope in ("day", "session"):
        second.limit(scope, tokens=1000, action="stop")
        assert isinstance(await second.admit(200), Over)
    await second.meter.close()


async def test_money_and_a_model_without_a_price(desk: Desk) -> None:
    desk.limit("day", cost=1.0, action="stop", warn_at=())
    await desk.call(100)  # costs 0.5
    found = await desk.admit(200_000)  # 0.6 for the input alone
    assert isinstance(found, Over)
    assert found.more == pytest.approx(0.6)
    unpriced = caller(prices=None)
    assert isinstance(await desk.admit(10**9, unpriced), Ticket)
    await desk.admit(10**9, unpriced)
    assert [text for text in desk.told if "price is not configured" in text] == desk.told
    assert len(desk.told) == 1


async def test_midnight_begins_a_new_budget_in_the_persons_time_zone(tmp_path: Path) -> None:
    clock = FakeClock()  # 08:40 UTC
    desk = Desk(tmp_path, fake_world(clock))
    desk.timezone = "Asia/Tokyo"  # 17:40
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    await desk.call(900)
    await clock.advance(6 * HOUR)  # 23:40
    found = await desk.admit(200)
    assert isinstance(found, Over)
    assert found.until == "2026-12-01 00:00 JST"
    await clock.advance(1_199)
    assert isinstance(await desk.admit(200), Over)
    await clock.advance(1)  # 00:00
    assert isinstance(await desk.admit(200), Ticket)
    await desk.meter.close()


class JumpingClock(FakeClock):
    def jump(self, seconds: float) -> None:
        """Wall time only, as when somebody sets the clock."""
        self._start_ms += round(seconds * 1000)


async def test_a_clock_that_jumps_finds_each_days_own_sum(tmp_path: Path) -> None:
    clock = JumpingClock()
    desk = Desk(tmp_path, fake_world(clock))
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    await desk.call(900)
    clock.jump(400 * 24 * HOUR)  # a wrong year, for a while
    await desk.call(300)
    assert isinstance(await desk.admit(800), Over)
    clock.jump(-400 * 24 * HOUR)
    found = await desk.admit(200)
    assert isinstance(found, Over)
    assert found.standing.spent == 900
    clock.jump(-24 * HOUR)
    assert isinstance(await desk.admit(900), Ticket)
    await desk.meter.close()


async def test_another_time_zone_is_another_day(desk: Desk) -> None:
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    desk.ledger.add(spent(900, at=desk.world.clock.now_ms() - 9 * HOUR * 1000))  # 23:40 UTC
    assert isinstance(await desk.admit(200), Ticket)
    desk.timezone = "America/New_York"  # both on the 30th there
    desk.timezone = "UTC-3"
    assert isinstance(await desk.admit(200), Ticket)
    desk.timezone = "UTC+9"  # 08:40 and 17:40 of one day
    assert isinstance(await desk.admit(200), Over)


async def test_a_grant_reaches_to_the_next_step_and_ends_with_its_day(tmp_path: Path) -> None:
    clock = FakeClock()
    desk = Desk(tmp_path, fake_world(clock))
    desk.limit("day", tokens=1000, action="ask", step=0.5, warn_at=())
    await desk.call(900)
    found = await desk.admit(200)
    assert isinstance(found, Over)
    desk.meter.grant(found)
    await desk.call(200)
    await desk.call(400)
    assert isinstance(await desk.admit(1), Over)  # 1,500 are used
    await clock.advance(24 * HOUR)
    await desk.call(1000)
    assert isinstance(await desk.admit(1), Over)
    await desk.meter.close()


async def test_calls_that_end_while_the_past_is_read_count_once(desk: Desk) -> None:
    ticket = await desk.admit(100)
    assert isinstance(ticket, Ticket)
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    loading = asyncio.create_task(desk.meter.ready("s1"))
    for _ in range(50):
        await asyncio.sleep(0)
        one = desk.meter.admit(caller(), 1, lambda level, text: None)
        assert isinstance(one, Ticket)
        desk.meter.settle(one, spent(1, at=desk.world.clock.now_ms()))
    await loading
    desk.meter.settle(ticket, spent(100, at=desk.world.clock.now_ms()))
    (standing,) = desk.meter.standings(caller())
    assert (standing.spent, standing.under_way) == (150, 0)


async def test_a_ledger_that_cannot_be_read_counts_what_is_known(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: object) -> object:
        raise StateDiskError("The state disk reports input/output errors: usage.db.", path=Path())

    monkeypatch.setattr(desk.ledger, "read", broken)
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    await desk.call(900)
    assert isinstance(await desk.admit(200), Over)


async def test_a_ledger_that_can_be_read_again_counts_all(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    await first.call(500)
    await first.meter.close()
    path, away = tmp_path / "usage" / "usage.db", tmp_path / "usage" / "away"
    path.rename(away)
    path.mkdir()  # cannot be opened, whoever runs this
    desk = Desk(tmp_path, first.world)
    await desk.meter.open()
    assert len(desk.troubles) == 1
    assert "count only what this engine spends" in desk.troubles[0]
    desk.limit("day", tokens=1000, action="stop", warn_at=())
    await desk.call(300)
    assert isinstance(await desk.admit(200), Ticket)
    path.rmdir()
    away.rename(path)
    over = await desk.admit(100)
    assert isinstance(over, Over)
    assert over.standing.spent == 800
    assert desk.troubles[1:] == [""]
    await desk.meter.close()


async def test_a_damaged_ledger_is_told_before_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "usage").mkdir()
    (tmp_path / "usage" / "usage.db").write_bytes(b"no database at all, but long enough" * 10)
    desk = Desk(tmp_path)
    await desk.meter.open()
    assert [kept.name for kept in desk.anew] == ["usage.db.damaged-1"]
    await desk.meter.close()


async def test_a_call_under_way_at_a_kill_counts_as_estimated(tmp_path: Path) -> None:
    dead = Desk(tmp_path)
    await dead.call(100)
    assert isinstance(await dead.admit(600), Ticket)
    refused = await dead.admit(50)
    assert isinstance(refused, Ticket)
    dead.meter.settle(refused, None)
    found = await dead.ledger.read(lambda c: schema.between(c, 0, 1 << 60))
    assert (found.calls, found.total) == (1, 100)  # under way is not yet spent
    # Nothing is settled or closed any more; the next engine opens the same file.
    second = Desk(tmp_path, dead.world)
    second.limit("day", tokens=1000, action="stop", warn_at=())
    over = await second.admit(400)
    assert isinstance(over, Over)
    assert over.standing.spent == 700
    sums = await second.ledger.read(lambda c: schema.of_session(c, "s1"))
    assert (sums.calls, sums.estimated, sums.input) == (2, 1, 690)
    await second.meter.close()
    third = Desk(tmp_path, dead.world)  # counted once
    assert (await third.ledger.read(lambda c: schema.of_session(c, "s1"))).total == 700
    await third.meter.close()
    await dead.ledger.close()


async def test_a_call_is_written_when_it_begins(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ticket = await desk.admit(600)
    assert isinstance(ticket, Ticket)
    assert desk.ledger._writer is not None
    await desk.ledger._writer  # no clock has moved
    other = read_only(tmp_path / "usage" / "usage.db")
    assert other.execute("SELECT n, input FROM open").fetchall() == [(ticket.number, 600)]
    desk.meter.settle(ticket, spent(700))
    await desk.meter.close()
    assert other.execute("SELECT count(*) FROM open").fetchone() == (0,)
    assert schema.between(other, 0, 1 << 60).total == 700
    other.close()
