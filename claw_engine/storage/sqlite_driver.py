"""Which SQLite this Python has, and how it gets vectors: the first step of a chain that works.

Many Pythons cannot load extensions. In order: the standard module with `load_extension`; the same
with sqlite-vec registered as an automatic extension; sqlean; pysqlite3; the standard module
without vectors. Knows no table.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.probes import Found, Health
from claw_engine.world import World

if TYPE_CHECKING:
    import sqlite3

PROBE_S = 20.0
"""Seconds that the child which tries a step may take."""


class Step(StrEnum):
    """How vectors come into SQLite; the last has none."""

    LOAD = "load_extension"
    AUTO = "auto_extension"
    SQLEAN = "sqlean"
    PYSQLITE3 = "pysqlite3"
    PLAIN = "without vectors"


class NoSqlite(ClawError):
    """This Python has no SQLite at all."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"This Python has no SQLite: {why}.",
            hint="Use a Python with the sqlite3 module, or install sqlean.py.",
        )


class Driver(Struct, frozen=True):
    """A module with the interface of `sqlite3`, and the step that gives it vectors.

    `missed` says of each earlier step why it was not taken.
    """

    module: ModuleType
    step: Step
    missed: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The library's own version."""
        return str(self.module.sqlite_version)

    def connect(self, target: str, *, uri: bool = False) -> sqlite3.Connection:
        """A connection for any one thread at a time, in autocommit mode.

        Raises the module's own `Error`.
        """
        connection = cast(
            "sqlite3.Connection",
            self.module.connect(
                target, uri=uri, isolation_level=None, check_same_thread=False, timeout=5.0
            ),
        )
        if self.step in (Step.LOAD, Step.SQLEAN, Step.PYSQLITE3):
            _load(connection)
        return connection


@lru_cache(maxsize=1)
def plain() -> Driver:
    """For a store that needs no vectors. Raises NoSqlite."""
    missed: list[str] = []
    for name in ("sqlite3", "sqlean", "pysqlite3.dbapi2"):
        try:
            return Driver(importlib.import_module(name), Step.PLAIN, tuple(missed))
        except ImportError as error:
            missed.append(str(error))
    raise NoSqlite("; ".join(missed))


async def with_vectors(world: World) -> Driver:
    """The first step that gives vectors, else one without; a step that crashes does so in a child.

    Raises NoSqlite. `Step.AUTO` holds for every connection of this process from then on.
    """
    missed: list[str] = []
    for step in (Step.LOAD, Step.AUTO, Step.SQLEAN, Step.PYSQLITE3):
        why = await _tried(world, step)
        if why is None:
            return Driver(_STEPS[step](), step, tuple(missed))
        missed.append(f"{step.value}: {why}")
    return Driver(plain().module, Step.PLAIN, tuple(missed))


async def look(world: World) -> list[Found]:
    """For `claw doctor`: which step is taken."""
    try:
        driver = await with_vectors(world)
    except NoSqlite as error:
        return [Found("sqlite", Health.FAIL, error.title, error.hint)]
    text = f"SQLite {driver.version} ({driver.module.__name__}), vectors: {driver.step.value}."
    if driver.step is not Step.PLAIN:
        return [Found("sqlite", Health.OK, text)]
    why = "; ".join(driver.missed)
    return [Found("sqlite", Health.WARN, f"{text} {why}", "Vectors are scored without SQLite.")]


async def _tried(world: World, step: Step) -> str | None:
    """Why the step does not work here; None if it does."""
    argv = [sys.executable, "-m", "claw_engine.storage.sqlite_driver", step.value]
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    child = await world.spawn.start(argv, cwd="/", env=env)
    said = b""
    try:
        async with asyncio.timeout(PROBE_S):
            while piece := await child.read(4096):
                said += piece
            code = await child.wait()
    except TimeoutError:
        child.signal_group(9)
        await child.wait()
        return "no answer in time"
    if code == 0:
        return None
    words = said.decode("utf-8", "replace").strip().splitlines()
    return words[-1][:200] if words else f"the probe ended with code {code}"


def _load(connection: sqlite3.Connection) -> None:
    import sqlite_vec  # only for whoever wants vectors

    connection.enable_load_extension(True)
    sqlite_vec.load(connection)
    connection.enable_load_extension(False)


def _loading() -> ModuleType:
    module = importlib.import_module("sqlite3")
    if not hasattr(module.Connection, "enable_load_extension"):
        raise ImportError("this Python was built without it")
    return module


def _automatic() -> ModuleType:
    import _sqlite3
    import ctypes  # only on this step
    import sqlite3
    from pathlib import Path

    import sqlite_vec

    where = getattr(_sqlite3, "__file__", None)
    if where is None:
        raise ImportError("the sqlite3 module is part of the interpreter")
    with sqlite3.connect(":memory:") as memory:
        built = {row[0] for row in memory.execute("PRAGMA compile_options")}
    memory.close()
    # Such a library hands an extension no functions to call: it would crash.
    if "OMIT_LOAD_EXTENSION" in built:
        raise ImportError("the SQLite library was built without extensions")
    path = Path(sqlite_vec.loadable_path())
    found = next((p for p in (path, *path.parent.glob(f"{path.name}.*")) if p.is_file()), None)
    if found is None:
        raise ImportError("sqlite-vec has no library here")
    vectors = ctypes.CDLL(str(found))
    library = ctypes.CDLL(where)  # resolves in the very library that the module uses
    register = library.sqlite3_auto_extension
    register.argtypes, register.restype = [ctypes.c_void_p], ctypes.c_int
    code = register(ctypes.cast(vectors.sqlite3_vec_init, ctypes.c_void_p))
    if code:
        raise ImportError(f"sqlite3_auto_extension answered {code}")
    return sqlite3


_STEPS: dict[Step, Callable[[], ModuleType]] = {
    Step.LOAD: _loading,
    Step.AUTO: _automatic,
    Step.SQLEAN: lambda: importlib.import_module("sqlean"),
    Step.PYSQLITE3: lambda: importlib.import_module("pysqlite3.dbapi2"),
}


def _main(name: str) -> int:
    """In the child: 0 if the step gives vectors."""
    step = Step(name)
    try:
        connection = Driver(_STEPS[step](), step).connect(":memory:")
        connection.execute("select vec_version()").fetchone()
        connection.close()
    except Exception as error:  # whatever it is, it is the answer
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
