"""The configuration in force: loads it, keeps the last good copy, swaps generations.

A file that cannot be used never turns into defaults: the last good copy stands in, with a banner,
or the start is refused with the line that is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.config.parse import read_plain
from claw_engine.config.problems import Banner, ConfigError, KeyPath, Problem, ProblemKind
from claw_engine.config.read import ConfigReader, Reading
from claw_engine.config.rules import Plan, plan
from claw_engine.config.settings import Settings
from claw_engine.paths import StateDir

if TYPE_CHECKING:
    from claw_engine.world import World


class Loaded(Struct, frozen=True):
    """The settings in force and what is to be said about them.

    `raw_hash` is the SHA-256 (hex) of the file's text as it is now, also when it is not in
    force. `files` are the files to watch.
    """

    settings: Settings
    problems: tuple[Problem, ...]
    banner: Banner | None
    raw_hash: str
    files: tuple[Path, ...] = ()


class Reloaded(Struct, frozen=True):
    """Outcome of a reload: `changed` leaf paths, empty when the file says what it said before.

    `swapped`: a new generation is in force. `plan` is what the rules of reloading made of the
    change; None when nothing changed, or a value was stored by the engine itself.
    """

    loaded: Loaded
    changed: tuple[KeyPath, ...]
    swapped: bool
    plan: Plan | None = None


class BaseMoved(Exception):
    """The file is not the one that the writer had read; `given` says whether it named one."""

    def __init__(self, *, given: bool) -> None:
        super().__init__("the base is another")
        self.given = given


class Refused(Exception):
    """What was to be written cannot be used; nothing was written. `problems` say why."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("the configuration is wrong")
        self.problems = problems


class ConfigStore:
    """Owner of the configuration. `path` defaults to OPENCLAW_CONFIG_PATH or the state directory's.

    `env` is the process environment; the store never changes it.
    """

    def __init__(
        self, world: World, state_dir: StateDir, env: Mapping[str, str], path: Path | None = None
    ) -> None:
        self._world = world
        self._state = state_dir
        self._env = dict(env)
        self.path = path or config_path(state_dir, env)
        self._current: Loaded | None = None
        self._text = ""
        self._present = False
        self._lock = asyncio.Lock()

    @property
    def current(self) -> Loaded:
        """What `load` or the last `reload` put in force. Raises RuntimeError before `load`."""
        if self._current is None:
            raise RuntimeError("the configuration is not loaded yet")
        return self._current

    @property
    def settings(self) -> Settings:
        return self.current.settings

    @property
    def loaded(self) -> Settings | None:
        """What is in force; None before `load`."""
        return self._current.settings if self._current is not None else None

    def load(self) -> Loaded:
        """Read the files at start. Raises ConfigError when nothing usable is there."""
        reading = self._read(1)
        if reading.settings is not None:
            self._current = self._accept(reading, reading.settings)
        else:
            self._current = self._stand_in(reading)
        return self._current

    async def reload(self) -> Reloaded:
        """Read the files again and swap when they are good and differ. Raises nothing of its own.

        A broken or vanished file keeps the settings in force and raises the banner.
        """
        async with self._lock:
            return await self._world.disk.run(self._reload)

    async def look(self) -> Reading:
        """The files as they are now, in force or not. Changes nothing, raises nothing."""
        return await self._world.disk.run(self._read, 0)

    async def write(self, make: Callable[[Reading], str], base_hash: str | None) -> Reloaded:
        """Replace the main file by what `make` makes of it, and reload; the old one is kept as
        `.bak`.

        `base_hash` is the hash of the file the writer knew (needed when there is one). Raises
        BaseMoved, Refused (the files stay as they were), ConfigError when it cannot be written,
        and what `make` raises.
        """
        async with self._lock:
            return await self._world.disk.run(self._write, make, base_hash)

    async def put(self, path: tuple[str, ...], value: object) -> Reloaded:
        """Set one value in the file, leaving all else in it alone, and put it in force.

        The file is 0600 afterwards: what we store may be a secret. Raises ConfigError when the file
        is broken or cannot be written.
        """
        async with self._lock:
            return await self._world.disk.run(self._put, path, value)

    def _put(self, path: tuple[str, ...], value: object) -> Reloaded:
        from claw_engine.config.edit import EditError, set_value  # most starts change nothing
        from claw_engine.config.spans import ScanError

        disk, target = self._world.disk, self.path.resolve()
        name = ".".join(path)
        try:
            text = read_plain(disk, target).decode() if disk.exists(target) else ""
            disk.replace(target, set_value(text, path, value).encode(), mode=0o600)
        except (OSError, EditError, ScanError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(
                f"{name} cannot be stored in {self.path}: {why}.",
                hint=f"Mend the file, or set {name} there yourself.",
                problems=(),
            ) from error
        return self._reload(rules=False)

    def _write(self, make: Callable[[Reading], str], base_hash: str | None) -> Reloaded:
        from claw_engine.config.draft import Draft  # most starts change nothing

        disk, target = self._world.disk, self.path.resolve()
        now = self._read(0)
        if now.present and base_hash != now.raw_hash:
            raise BaseMoved(given=base_hash is not None)
        data = make(now).encode()
        drafted = ConfigReader(self.path, self._surroundings(), Draft(disk, target, data)).read(0)
        if drafted.settings is None:
            raise Refused(drafted.problems)
        try:
            if now.present:
                disk.replace(target.with_name(target.name + ".bak"), now.text.encode(), mode=0o600)
            disk.replace(target, data, mode=0o600)
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written: {error.strerror or error}.",
                hint="Nothing was changed.", problems=(),
            ) from error  # fmt: skip
        return self._reload()

    def _surroundings(self) -> dict[str, str]:
        return {**self._dotenv()[0], **self._env}

    def _reload(self, *, rules: bool = True) -> Reloaded:
        before = self.current
        reading = self._read(before.settings.generation + 1)
        if reading.settings is None:
            return self._refuse(reading, reading.fatal)
        if self._present and not reading.present:
            return self._refuse(reading, _vanished(self.path))
        if _same(before.settings, reading.settings):
            kept = replace(reading.settings, generation=before.settings.generation)
            self._current = self._accept(reading, kept)
            return Reloaded(self._current, (), swapped=False)
        new = reading.settings
        changed = _changed(before.settings, new)
        if not rules:
            self._current = self._accept(reading, new)
            return Reloaded(self._current, changed, swapped=True)
        found = plan(changed, new.gateway.reload.mode)
        settings = before.settings if found.hold else _pinned(before.settings, new)
        self._current = self._accept(reading, settings)
        return Reloaded(self._current, changed, swapped=not found.hold, plan=found)

    def _read(self, generation: int) -> Reading:
        found, problems = self._dotenv()
        reading = ConfigReader(self.path, {**found, **self._env}, self._world.disk).read(generation)
        return replace(reading, problems=(*reading.problems, *problems)) if problems else reading

    def _dotenv(self) -> tuple[dict[str, str], tuple[Problem, ...]]:
        path = self._state.root / ".env"
        try:
            text = read_plain(self._world.disk, path).decode("utf-8", "replace")
        except FileNotFoundError:
            return {}, ()
        except OSError as error:
            message = f"cannot be read, so none of its variables is set: {error.strerror or error}"
            return {}, (Problem(ProblemKind.STORAGE, (), message, str(path)),)
        from claw_engine.config.dotenv import parse_dotenv  # most installs have no such file

        return parse_dotenv(text), ()

    def _accept(self, reading: Reading, settings: Settings) -> Loaded:
        problems = reading.problems
        if reading.present:
            problems += self._keep_last_good(reading.keep)
        elif self._world.disk.exists(self._state.config_last_good):
            problems += (_no_file(self.path, self._state.config_last_good),)
        self._text, self._present = reading.text, reading.present
        return Loaded(settings, problems, None, reading.raw_hash, self._watched(reading))

    def _watched(self, reading: Reading) -> tuple[Path, ...]:
        return (*reading.files, self._state.root / ".env")

    def _keep_last_good(self, data: bytes) -> tuple[Problem, ...]:
        path = self._state.config_last_good
        disk = self._world.disk
        try:
            if not disk.exists(path) or read_plain(disk, path) != data:
                disk.replace(path, data, mode=0o600)
        except OSError as error:
            message = f"the last good copy could not be written: {error.strerror or error}"
            return (Problem(ProblemKind.STORAGE, (), message, str(path)),)
        return ()

    def _stand_in(self, reading: Reading) -> Loaded:
        copy = ConfigReader(
            self._state.config_last_good, self._surroundings(), self._world.disk
        ).read(1)
        if copy.settings is None or not copy.present:
            raise _refusal(self.path, reading)
        self._text, self._present = copy.text, True
        banner = self._banner(reading, reading.fatal, copy.settings)
        return Loaded(
            copy.settings, reading.problems, banner, reading.raw_hash, self._watched(reading)
        )

    def _refuse(self, reading: Reading, problem: Problem | None) -> Reloaded:
        before = self.current
        problems = reading.problems
        if problem is not None and problem not in problems:
            problems = (*problems, problem)
        banner = self._banner(reading, problem, before.settings)
        files = tuple(dict.fromkeys((*self._watched(reading), *before.files)))
        self._current = Loaded(before.settings, problems, banner, reading.raw_hash, files)
        return Reloaded(self._current, (), swapped=False)

    def _banner(self, reading: Reading, problem: Problem | None, in_force: Settings) -> Banner:
        from claw_engine.config.diff import text_diff  # only when something is broken
        from claw_engine.config.redact import Redactor

        redactor = Redactor.from_settings(in_force, in_force.logging.redact_patterns)
        return Banner(
            code="config-broken",
            title=f"{self.path.name} is not in force: the last good configuration is used",
            text=problem.sentence() if problem else "",
            hint=f"Mend {self.path} and save it; it is read again at once.",
            file=problem.file if problem else str(self.path),
            line=problem.line if problem else 0,
            column=problem.column if problem else 0,
            diff=text_diff(self._text, reading.text, redactor) if reading.present else "",
        )


def config_path(state_dir: StateDir, env: Mapping[str, str]) -> Path:
    """OPENCLAW_CONFIG_PATH, else `openclaw.json` in the state directory."""
    named = env.get("OPENCLAW_CONFIG_PATH", "").strip()
    return Path(named).expanduser().absolute() if named else state_dir.config


def _refusal(path: Path, reading: Reading) -> ConfigError:
    problem = reading.fatal
    what = problem.sentence() if problem else str(path)
    return ConfigError(
        f"The configuration cannot be used: {what}",
        hint=f"Mend that place, or move {path} away to start with defaults.",
        problems=reading.problems,
    )


def _no_file(path: Path, last_good: Path) -> Problem:
    message = f"there is no such file: defaults are used; an earlier one is kept in {last_good}"
    return Problem(ProblemKind.STORAGE, (), message, str(path))


def _vanished(path: Path) -> Problem:
    message = "the file is gone; to go back to defaults, write {} into it or restart"
    return Problem(ProblemKind.STORAGE, (), message, str(path))


def _pinned(old: Settings, new: Settings) -> Settings:
    """The new settings, with what is fixed at a start left as it was then."""
    gateway = replace(
        old.gateway, reload=new.gateway.reload, stated=old.gateway.stated | {"reload"}
    )
    return replace(new, gateway=gateway, durability=old.durability)


def _same(old: Settings, new: Settings) -> bool:
    return old.raw == new.raw and old.resolved == new.resolved and old.env == new.env


def _changed(old: Settings, new: Settings) -> tuple[KeyPath, ...]:
    from claw_engine.config.diff import changed_paths  # off the start path

    written = changed_paths(old.raw, new.raw)
    return tuple(dict.fromkeys((*written, *changed_paths(old.resolved, new.resolved))))
