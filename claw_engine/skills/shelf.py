"""The skills of an agent as they are now: found, judged and listed, each anew only after a change.

`look` visits the disk and belongs on its thread; what it returns is a value for the loop. The same
object comes back while no file, no setting and no program changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from claw_engine.config.sections.skills import SkillsLimits
from claw_engine.skills.gates import Machine, Verdict, judged
from claw_engine.skills.listing import Listing, Shown, listing, short_path
from claw_engine.skills.model import Found
from claw_engine.skills.roots import roots_of
from claw_engine.skills.scan import Scanner
from claw_engine.world import Clock, Disk

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

PROGRAMS_S = 30.0
"""Seconds that a look for programs on the PATH counts."""
_KEPT = 32
"""Agents, and places of one, that are remembered."""


class Place(Protocol):
    """A sandbox as far as skills care; `key` is its name for caches."""

    @property
    def key(self) -> str: ...
    def shows(self, path: str) -> str | None:
        """The path there of a file here; None = it cannot be read there."""
        ...


class AgentSkills:
    """One look's result; loop thread."""

    def __init__(
        self, verdicts: tuple[Verdict, ...], limits: SkillsLimits, workspace: str, home: str
    ) -> None:
        self.verdicts = verdicts
        self._limits = limits
        self._home = home
        self._workspace = workspace
        self._short = short_path(home)
        self._usable = tuple(v.found for v in verdicts if not v.reason)
        self._lists: dict[str, Listing] = {}
        outside = (f.folder for f in self._usable if not f.folder.startswith(f"{workspace}/"))
        self._folders = tuple(dict.fromkeys(outside))

    def still(self, verdicts: tuple[Verdict, ...], limits: SkillsLimits, home: str) -> bool:
        """Whether another look would say the same."""
        return (self.verdicts, self._limits, self._home) == (verdicts, limits, home)

    def of(self, place: Place | None) -> Listing:
        """What the model is shown there."""
        key = place.key if place is not None else ""
        known = self._lists.get(key)
        if known is None:
            if len(self._lists) >= _KEPT:
                self._lists.clear()
            shown = [one for found in self._usable if (one := self._shown(found, place))]
            known = self._lists[key] = listing(shown, self._limits)
        return known

    def folders(self, place: Place | None) -> tuple[str, ...]:
        """Folders of usable skills that lie outside the workspace; a sandbox has none."""
        return self._folders if place is None else ()

    def _shown(self, found: Found, place: Place | None) -> Shown | None:
        assert found.front is not None  # a usable one has it
        where = self._short(found.path) if place is None else place.shows(found.path)
        return Shown(found.front, found.path, where) if where is not None else None


class _Kept(Struct, eq=False):
    """The last look for one agent, and what it was made of; `stated` are settings, by identity."""

    stated: tuple[object, ...]
    found: tuple[Found, ...]
    programs: Mapping[str, bool]
    skills: AgentSkills


class SkillShelf:
    """One for the engine; `managed` is the state directory's own folder of skills."""

    def __init__(self, disk: Disk, clock: Clock, managed: Path) -> None:
        self._clock = clock
        self._managed = managed
        self._scanner = Scanner(disk)
        self._kept: dict[tuple[str, str], _Kept] = {}
        self._programs: dict[str, dict[str, bool]] = {}
        self._looked = 0.0

    def look(self, settings: Settings, agent_id: str, workspace: Path) -> AgentSkills:
        """What there is now. Blocking; raises nothing."""
        env = settings.env or os.environ
        roots = roots_of(settings, env, self._managed, workspace)
        found = self._scanner.scan(roots, settings.skills.limits)
        programs = self._known_programs(settings, env)
        key = (agent_id, str(workspace))
        stated = (settings.skills, settings.resolved, settings.env, settings.agents.list)
        kept = self._kept.get(key)
        if (
            kept is not None
            and all(a is b for a, b in zip(kept.stated, stated, strict=True))
            and kept.programs is programs
            and same(kept.found, found)
        ):
            return kept.skills
        path = _path_of(settings, env)

        def which(name: str) -> bool:
            known = programs.get(name)
            if known is None:
                known = programs[name] = on_path(name, path)
            return known

        machine = Machine(which, env, settings.resolved)
        verdicts = judged(found, settings.skills, machine, names_of(settings, agent_id))
        skills = kept.skills if kept is not None else None
        limits, home = settings.skills.limits, env.get("HOME", "")
        if skills is None or not skills.still(verdicts, limits, home):
            skills = AgentSkills(verdicts, limits, str(workspace), home)
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[key] = _Kept(stated, found, programs, skills)
        return skills

    def _known_programs(self, settings: Settings, env: Mapping[str, str]) -> dict[str, bool]:
        """Programs looked for lately; forgotten after a while, because they come and go."""
        now = self._clock.monotonic()
        if now - self._looked > PROGRAMS_S:
            self._programs, self._looked = {}, now
        return self._programs.setdefault(_path_of(settings, env), {})


def same(one: tuple[Found, ...], other: tuple[Found, ...]) -> bool:
    """Whether two looks found the very same files: what did not change is the same object."""
    return len(one) == len(other) and all(a is b or a == b for a, b in zip(one, other, strict=True))


def names_of(settings: Settings, agent_id: str) -> frozenset[str] | None:
    """The only skills that an agent has by configuration; None = all."""
    entry = next((e for e in settings.agents.list if e.id.strip().lower() == agent_id), None)
    if entry is None or entry.skills is None:
        return None
    return frozenset(entry.skills)


def on_path(name: str, path: str) -> bool:
    """Whether a command would find that program."""
    if not name or "/" in name or "\0" in name:
        return False
    for folder in path.split(":"):
        full = f"{folder or '.'}/{name}"
        if os.path.isfile(full) and os.access(full, os.X_OK):  # noqa: PTH113 - text paths throughout
            return True
    return False


def _path_of(settings: Settings, env: Mapping[str, str]) -> str:
    return ":".join((*settings.tools.exec.path_prepend, env.get("PATH", os.defpath)))
