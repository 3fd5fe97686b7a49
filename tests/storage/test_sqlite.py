"""The SQLite door: modes, what a damaged file becomes, errors in our words, vectors by any step."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from claw_engine.probes import Health
from claw_engine.storage import sqlite_driver
from claw_engine.storage.errors import StateDiskError, StateDiskFull
from claw_engine.storage.sqlite import (
    Database,
    DatabaseDamaged,
    database_error,
    open_database,
    read_only,
    transaction,
)
from claw_engine.storage.sqlite_driver import Driver, Step
from claw_engine.world import real_world


def table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS words (word TEXT)")


async def opened(path: Path) -> Database:
    return await open_database(path, table)


async def add(database: Database, word: str) -> None:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO words VALUES (?)", (word,))

    await database.run(lambda connection: transaction(connection, write))


async def words(database: Database) -> list[str]:
    rows = await database.run(lambda c: c.execute("SELECT word FROM words").fetchall())
    return [row[0] for row in rows]


async def test_an_opening_that_is_given_up_leaves_nothing_open(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        table(connection)
        begun.set()
        assert go_on.wait(20)

    opening = asyncio.create_task(open_database(tmp_path / "t.db", slow))
    await asyncio.to_thread(begun.wait, 20)
    opening.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    # The last connection takes the write-ahead log with it.
    assert {file.name for file in tmp_path.iterdir()} == {"t.db"}


async def test_files_are_private_and_logged_ahead(tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir(0o755)
    before = os.umask(0)
    try:
        database = await opened(folder / "t.db")
        await add(database, "one")
        names = {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}
        mode = await database.run(lambda c: c.execute("PRAGMA journal_mode").fetchone()[0])
        await database.shut()
    finally:
        os.umask(before)
    assert names == {"t.db": 0o600, "t.db-wal": 0o600, "t.db-shm": 0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert mode == "wal"


async def test_a_lax_file_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "t" / "t.db"
    await (await opened(path)).shut()
    path.chmod(0o644)
    await (await opened(path)).shut()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    database = await opened(path)
    await add(database, "kept")
    await database.shut()
    again = await opened(path)
    assert await words(again) == ["kept"]
    assert again.kept is None
    await again.shut()


@pytest.mark.parametrize(
    "content", [b"only words " * 40, b"SQLite format 3\0"], ids=["words", "torn"]
)
async def test_a_damaged_file_is_put_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(content)
    path.with_name("t.db-wal").write_bytes(b"old log")
    database = await opened(path)
    await add(database, "fresh")
    assert database.kept == tmp_path / "t.db.damaged-1"
    assert database.kept.read_bytes() == content
    assert (tmp_path / "t.db.damaged-1-wal").read_bytes() == b"old log"
    await database.shut()
    path.write_bytes(content)
    second = await opened(path)
    assert second.kept == tmp_path / "t.db.damaged-2"
    await second.shut()


async def test_torn_pages_are_found_after_an_unclean_end(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    database = await opened(path)
    for number in range(3):
        await add(database, f"{number}" * 3000)
    await database.shut()
    data = bytearray(path.read_bytes())
    data[4096 * 2 :] = b"\xff" * (len(data) - 4096 * 2)
    path.write_bytes(bytes(data))
    path.with_name("t.db-wal").write_bytes(b"")  # what a killed writer leaves
    again = await opened(path)
    assert again.kept is not None
    assert await words(again) == []
    await again.shut()


async def test_a_transaction_is_whole_or_nothing(tmp_path: Path) -> None:
    database = await opened(tmp_path / "t.db")

    def half(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO words VALUES ('half')")
        raise KeyError("stopped")

    with pytest.raises(KeyError):
        await database.run(lambda c: transaction(c, half))
    assert await words(database) == []
    await database.shut()


async def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    database = await opened(tmp_path / "t.db")
    await database.run(lambda c: c.execute("PRAGMA max_page_count=4").fetchone())
    with pytest.raises(StateDiskFull, match=r"t\.db"):
        await add(database, "x" * 100_000)
    await add(database, "small")  # the connection is still good
    assert await words(database) == ["small"]
    await database.shut()


async def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateDiskError):
        await opened(tmp_path / "file" / "t.db")


async def test_reading_without_an_engine_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with pytest.raises(StateDiskError):
        read_only(path)
    assert not path.exists()
    database = await opened(path)
    await add(database, "seen")
    reader = read_only(path)  # beside a writer
    assert reader.execute("SELECT word FROM words").fetchall() == [("seen",)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("INSERT INTO words VALUES ('no')")
    reader.close()
    await database.shut()
    path.write_bytes(b"words" * 1000)
    with pytest.raises(DatabaseDamaged):
        read_only(path)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(11, DatabaseDamaged), (26, DatabaseDamaged), (13, StateDiskFull),
     (10 | 3 << 8, StateDiskError), (8, StateDiskError), (5, StateDiskError)],
)  # fmt: skip
def test_errors_by_their_code(code: int, kind: type[StateDiskError]) -> None:
    error = sqlite3.OperationalError("words")
    error.sqlite_errorcode = code
    assert type(database_error(error, Path("/t.db"))) is kind


def test_other_errors_are_not_the_disks() -> None:
    error = sqlite3.OperationalError("no such table")
    error.sqlite_errorcode = 1
    assert database_error(error, Path("/t.db")) is None
    assert database_error(KeyError("x"), Path("/t.db")) is None


async def test_the_step_that_gives_vectors_gives_them() -> None:
    driver = await sqlite_driver.with_vectors(real_world())
    if driver.step is Step.PLAIN:
        pytest.skip(f"no vectors here: {driver.missed}")
    connection = driver.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE v USING vec0(e float[2])")
    connection.execute("INSERT INTO v (rowid, e) VALUES (1, '[1, 0]'), (2, '[0, 1]')")
    found = connection.execute(
        "SELECT rowid FROM v WHERE e MATCH '[0.1, 0.9]' AND k = 1 ORDER BY distance"
    ).fetchall()
    assert found == [(2,)]
    connection.close()


async def test_a_step_that_fails_says_why_and_the_next_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def none(world: object, step: Step) -> str | None:
        return f"{step.value} is not here"

    monkeypatch.setattr(sqlite_driver, "_tried", none)
    driver = await sqlite_driver.with_vectors(real_world())
    assert driver.step is Step.PLAIN
    assert len(driver.missed) == 4
    found = (await sqlite_driver.look(real_world()))[0]
    assert found.health is Health.WARN
    assert "sqlean is not here" in found.text


async def test_the_probe_of_an_absent_module_names_it() -> None:
    said = await sqlite_driver._tried(real_world(), Step.PYSQLITE3)
    assert said is None or "pysqlite3" in said


def test_plain_needs_no_vectors() -> None:
    driver = sqlite_driver.plain()
    assert isinstance(driver, Driver)
    assert driver.version.count(".") >= 1
