from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from claw_engine.storage.errors import StateDiskError
from claw_engine.storage.sqlite import read_only
from claw_engine.usage import schema
from claw_engine.usage.records import Spent, Sums
from tests.support.fakes import START_MS
from tests.usage.samples import Desk, spent

FOREVER = 1 << 60
DAY = schema.DAY_MS


def total(calls: list[Spent]) -> Sums:
    sums = Sums()
    for call in calls:
        sums.add(call)
    return sums


async def all_of(desk: Desk) -> Sums:
    return await desk.ledger.read(lambda c: schema.between(c, 0, FOREVER))


async def test_what_was_added_is_read_at_once_and_by_every_group(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    calls = [
        spent(100), spent(200, sid="s2", session="b", model="x/y", cost=None),
        spent(300, cause="tool_round", measured=False), spent(50, at=START_MS - DAY),
    ]  # fmt: skip
    for call in calls:
        desk.ledger.add(call)
    assert await all_of(desk) == total(calls)
    read = desk.ledger.read
    by = await read(lambda c: schema.grouped(c, "model", 0, FOREVER))
    assert by == {"fake/one": total([calls[0], *calls[2:]]), "x/y": total(calls[1:2])}
    causes = await read(lambda c: schema.grouped(c, "cause", START_MS, FOREVER, "agent:main:main"))
    assert causes == {"turn": total(calls[:1]), "tool_round": total(calls[2:3])}
    assert await read(lambda c: schema.of_session(c, "s2")) == total(calls[1:2])
    edges = [START_MS // DAY * DAY + n * DAY for n in (-2, -1, 0, 1)]
    days = await read(lambda c: schema.daily(c, edges))
    assert days == [Sums(), total(calls[3:]), total(calls[:3])]
    points = await read(lambda c: schema.points(c, "s1"))
    assert [p.sums.total for p in points] == [50, 100, 300]
    await desk.ledger.close()


async def test_it_outlives_the_engine_and_is_private(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    first.ledger.add(spent(100))
    await first.ledger.close()
    second = Desk(tmp_path)
    assert (await all_of(second)).total == 100
    folder = tmp_path / "usage"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in folder.iterdir()} == {0o600}
    await second.ledger.close()


async def test_folding_old_calls_changes_no_sum(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    draw = random.Random(5)
    old = START_MS - (schema.FOLD_DAYS + 20) * DAY
    calls = [
        spent(draw.randrange(1, 5000), at=old + draw.randrange(40 * DAY), cost=0.25,
              sid=draw.choice("abc"), session=draw.choice("abc"), model=draw.choice(["m/1", "m/2"]),
              measured=draw.random() < 0.8)
        for _ in range(3000)
    ]  # fmt: skip
    for call in calls:
        desk.ledger.add(call)
    edges = [old // DAY * DAY + n * DAY - 20_700_000 for n in range(45)]  # midnight in Nepal
    before = await desk.ledger.read(
        lambda c: (schema.daily(c, edges), schema.grouped(c, "model", 0, FOREVER))
    )
    await desk.ledger.close()
    again = Desk(tmp_path)  # folds at opening
    rows = await again.ledger.read(
        lambda c: c.execute("SELECT COUNT(*) FROM spent WHERE folded = 1").fetchone()[0]
    )
    assert 0 < rows < 1800
    after = await again.ledger.read(
        lambda c: (schema.daily(c, edges), schema.grouped(c, "model", 0, FOREVER))
    )
    assert after == before
    assert (await all_of(again)).calls == len(calls)
    await again.ledger.close()


async def test_a_damaged_ledger_is_put_aside_and_begun_anew(tmp_path: Path) -> None:
    (tmp_path / "usage").mkdir()
    (tmp_path / "usage" / "usage.db").write_bytes(b"no database at all, but long enough" * 10)
    desk = Desk(tmp_path)
    desk.ledger.add(spent(100))
    assert (await all_of(desk)).total == 100
    assert desk.anew == [tmp_path / "usage" / "usage.db.damaged-1"]
    assert desk.anew[0].exists()
    await desk.ledger.close()


async def test_a_disk_that_fails_is_told_once_and_nothing_is_lost(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.ledger.add(spent(100))
    await all_of(desk)
    database = desk.ledger._database
    assert database is not None
    await database.run(lambda c: c.execute("PRAGMA query_only = ON").fetchall())
    for _ in range(2):
        desk.ledger.add(spent(10))
        with pytest.raises(StateDiskError):
            await all_of(desk)
    assert len(desk.troubles) == 1
    assert desk.troubles[0]
    await database.run(lambda c: c.execute("PRAGMA query_only = OFF").fetchall())
    assert (await all_of(desk)).total == 120
    assert desk.troubles[1:] == [""]
    await desk.ledger.close()


async def test_a_read_counts_what_came_before_it_and_not_what_comes_after(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.ledger.add(spent(1))

    def taken() -> None:
        desk.ledger.add(spent(1000))

    found = await desk.ledger.read(lambda c: schema.between(c, 0, FOREVER), taken)
    assert found.total == 1
    assert (await all_of(desk)).total == 1001
    await desk.ledger.close()


async def reopened(root: Path) -> Sums:
    desk = Desk(root)
    try:
        return await all_of(desk)
    finally:
        await desk.ledger.close()


CHILD = """
    import asyncio, sys
    from pathlib import Path
    from tests.usage.samples import Desk, spent
    from claw_engine.usage import schema

    async def main():
        desk = Desk(Path(sys.argv[1]))
        n = 0
        while True:
            n += 1
            desk.ledger.add(spent(1, sid=str(n)))
            if n % 7 == 0:
                sums = await desk.ledger.read(lambda c: schema.between(c, 0, 1 << 60))
                print(sums.calls, flush=True)
            await asyncio.sleep(0)

    asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [1, 20])
def test_kill_9_loses_nothing_that_was_read(tmp_path: Path, lines: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert child.stdout is not None
    seen = 0
    for _ in range(lines):
        seen = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    rest = child.communicate()
    seen = int(rest[0].split()[-1]) if rest[0].endswith("\n") and rest[0].split() else seen
    sums = asyncio.run(reopened(tmp_path))
    assert sums.calls >= seen
    assert sums.total == sums.calls  # no half of a row


def test_the_file_can_be_read_by_another_process(tmp_path: Path) -> None:
    async def fill() -> None:
        desk = Desk(tmp_path)
        desk.ledger.add(spent(100))
        await desk.ledger.close()

    asyncio.run(fill())
    connection: sqlite3.Connection = read_only(tmp_path / "usage" / "usage.db")
    assert schema.between(connection, 0, FOREVER).total == 100
    connection.close()
