"""Case IN-01: Pythons that cannot load extensions. The store opens, and the doctor says why."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import ModuleType

import pytest

from claw_engine.probes import Health
from claw_engine.storage import sqlite_driver
from claw_engine.storage.sqlite import open_database
from claw_engine.storage.sqlite_driver import Driver, Step
from claw_engine.world import real_world


def module(connection: type) -> ModuleType:
    """A stand-in for `sqlite3` whose connections are of another build."""
    made = ModuleType("sqlite3")
    made.Connection = connection  # type: ignore[attr-defined]  # a module has what it is given
    made.connect = lambda *a, **k: connection()  # type: ignore[attr-defined]  # as above
    return made


class Bare:
    """Built without extensions: the method is not there."""


class Forbidden:
    def enable_load_extension(self, on: bool) -> None:
        raise sqlite3.OperationalError("not authorized")


def test_a_build_without_the_method_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = sqlite_driver.importlib.import_module
    monkeypatch.setattr(sqlite_driver.importlib, "import_module",
                        lambda name: module(Bare) if name == "sqlite3" else real(name))  # fmt: skip
    assert sqlite_driver._main(Step.LOAD.value) == 1
    assert capsys.readouterr().out == "ImportError: this Python was built without it\n"


def test_a_build_that_forbids_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sqlite_driver._STEPS, Step.LOAD, lambda: module(Forbidden))
    assert sqlite_driver._main(Step.LOAD.value) == 1
    assert capsys.readouterr().out == "OperationalError: not authorized\n"


@pytest.mark.parametrize("library", [b"", b"\x7fELF" + b"\0" * 200, b"not a library at all"])
async def test_a_library_of_another_machine_ends_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: bytes
) -> None:
    """In a child: what it says is told, whatever it dies of."""
    (tmp_path / "vec0.so").write_bytes(library)
    (tmp_path / "sqlite_vec.py").write_text(
        f"def loadable_path():\n    return {str(tmp_path / 'vec0')!r}\n"
        "def load(connection):\n    connection.load_extension(loadable_path())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for step in (Step.LOAD, Step.AUTO):
        why = await sqlite_driver._tried(real_world(), step)
        assert why, f"{step.value} took a library that is none"


async def test_without_any_of_it_the_store_opens_and_the_doctor_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(world: object, step: Step) -> str:
        return "not authorized"

    monkeypatch.setattr(sqlite_driver, "_tried", none)
    driver = await sqlite_driver.with_vectors(real_world())
    assert (driver.step, len(driver.missed)) == (Step.PLAIN, 4)
    database = await open_database(
        tmp_path / "t.db", lambda c: c.execute("CREATE TABLE IF NOT EXISTS t (x)") and None, driver
    )
    await database.run(lambda c: c.execute("INSERT INTO t VALUES (1)"))
    assert await database.run(lambda c: c.execute("SELECT x FROM t").fetchall()) == [(1,)]
    await database.shut()
    (found,) = await sqlite_driver.look(real_world())
    assert found.health is Health.WARN and found.hint
    assert "load_extension: not authorized" in found.text


def test_the_plain_step_never_asks_for_extensions() -> None:
    assert isinstance(Driver(module(Forbidden), Step.PLAIN).connect(":memory:"), Forbidden)
