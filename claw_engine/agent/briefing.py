"""What the model is told before the talk itself: the system prompt and the tools of one run.

Gathers the facts from the pinned settings, the sandbox and the place the message came from; also
used to say what a run would be told. Calls no model and writes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from claw_engine.agent.options import Options
from claw_engine.agent.ports import StandingOf, ToolBox, ToolShelf
from claw_engine.agent.prompt.builder import Files, PromptBuilder, SkillList, SystemPrompt
from claw_engine.agent.prompt.facts import (
    INBOUND_FIELD,
    NOWHERE,
    Boxed,
    Elevated,
    Facts,
    Host,
    Surface,
    mode_of,
    needs_reasoning_tags,
)
from claw_engine.models.base import ModelRef, ToolSpec
from claw_engine.sandbox.box import AGENT_MOUNT, Backend, Box, Standing, WorkspaceAccess
from claw_engine.tools.policy.circumstances import circumstances
from claw_engine.tools.standing import settings_of

if TYPE_CHECKING:
    from claw_engine.agent.prompt.system_report import Report, ReportBook, Told
    from claw_engine.config.settings import Settings

REASONING_FIELD = "reasoningLevel"
"""Field of a message's `extra`: whether the session shows the model's thoughts."""
OWNER_DIGITS = 12
"""Hex digits of a sender that is shown by its hash (agent digest §2.2)."""


class Speaker(Struct, frozen=True):
    """Whose run it is, and by which door its message came."""

    session_key: str
    agent_id: str
    source: str = ""
    extra: Mapping[str, object] = {}


class Seen(Struct, frozen=True, eq=False):
    """What a look at the disk found; None where there was nothing to look at yet."""

    files: Files | None = None
    skills: Skills | None = None


class Place(Struct, frozen=True):
    """A sandbox as the skills see it."""

    box: Box

    @property
    def key(self) -> str:
        box = self.box
        return f"{box.key} {box.backend} {box.access} {box.workspace}"

    def shows(self, path: str) -> str | None:
        """The path of a file of this machine there; None = it cannot be read there."""
        box = self.box
        if box.backend is None or not (box.shows(path) or path.startswith(f"{box.workspace}/")):
            return None
        return box.inside(path)


class Skills(Protocol):
    """The skills of one agent as they are on the disk."""

    def of(self, place: Place | None) -> SkillList:
        """Those that can be read from there; the same object while nothing changed."""
        ...

    def folders(self, place: Place | None) -> tuple[str, ...]:
        """The folders of these skills that lie outside the workspace."""
        ...


class SkillSource(Protocol):
    """Looks for skills."""

    def look(self, settings: Settings, agent_id: str, workspace: Path) -> Skills:
        """What there is now. Blocking: for the disk's thread; raises nothing."""
        ...


class Briefing(Struct, frozen=True, eq=False):
    """What a run starts with. `readable` are folders that may be read besides the workspace;
    `told` is what a report of it is made from."""

    prompt: SystemPrompt
    tools: ToolBox
    specs: tuple[ToolSpec, ...]
    standing: Standing
    told: Told
    readable: tuple[str, ...] = ()


class Briefer:
    """One for the engine; loop thread only."""

    def __init__(
        self,
        prompts: PromptBuilder,
        tools: ToolShelf,
        host: Host,
        standing: StandingOf | None,
        skills: SkillSource | None,
    ) -> None:
        self._reports: ReportBook | None = None
        self._prompts = prompts
        self._tools = tools
        self._host = host
        self._standing = standing
        self._skills = skills
        self._known: tuple[tuple[object, ...], _Stated] | None = None

    async def look(self, settings: Settings, chosen: Options, agent_id: str) -> Seen:
        """Files and skills as they are now, in one visit to the disk."""
        source = self._skills
        if source is None:
            return Seen(await self._prompts.look(chosen.workspace))

        def skills() -> Skills:
            return source.look(settings, agent_id, chosen.workspace)

        return Seen(*await self._prompts.look_with(chosen.workspace, skills))

    async def brief(
        self, settings: Settings, chosen: Options, ref: ModelRef, speaker: Speaker, seen: Seen
    ) -> Briefing:
        """What this run is told. Raises OSError and what finding its sandbox raises."""
        standing = await self._where(settings, chosen, speaker)
        there = circumstances(
            settings, speaker.session_key, speaker.agent_id, source=speaker.source,
            extra=speaker.extra, provider=ref.provider, model=ref.id,
        )  # fmt: skip
        tools = self._tools.under(settings, there)
        specs = tools.specs()
        stated = self._stated(settings)
        box = standing.box
        facts = Facts(
            speaker.agent_id, ref.name, chosen.thinking, chosen.timezone,
            str(chosen.workspace) if box is None else box.workdir, self._host,
            tuple((spec.name, tools.get(spec.name).summary) for spec in specs),
            mode=mode_of(speaker.session_key),
            default_model=stated.model,
            reasoning=_word(speaker.extra.get(REASONING_FIELD)),
            aliases=stated.aliases,
            owners=stated.owners,
            box=boxed(standing),
            surface=_surface(speaker.extra),
            reasoning_tags=needs_reasoning_tags(ref.provider),
        )  # fmt: skip
        skills = seen.skills
        place = Place(box) if box is not None else None
        prompt = await self._prompts.build(
            facts, speaker.session_key, chosen.limits, seen.files, chosen.workspace,
            skills.of(place) if skills is not None else None,
        )  # fmt: skip
        readable = skills.folders(place) if skills is not None else ()
        if self._host.docs and box is None:
            readable = (*readable, self._host.docs)
        from claw_engine.agent.prompt.system_report import Told  # no start needs it

        told = Told(
            prompt, specs, ref, speaker.session_key, str(chosen.workspace), chosen.limits,
            settings_of(settings, speaker.agent_id).mode, box is not None,
        )  # fmt: skip
        return Briefing(prompt, tools, specs, standing, told, readable)

    def report(self, told: Told, now_ms: Callable[[], int]) -> Report:
        """What a run's prompt is made of; the same object while nothing changed."""
        if self._reports is None:
            from claw_engine.agent.prompt.system_report import ReportBook

            self._reports = ReportBook()
        return self._reports.of(told, now_ms)

    async def estimate(
        self, settings: Settings, chosen: Options, ref: ModelRef, speaker: Speaker, now_ms: int
    ) -> Report:
        """The report of a run that would begin now. Raises as `brief` does."""
        await self._prompts.prepare(chosen.workspace, seeding=chosen.seeding)
        seen = await self.look(settings, chosen, speaker.agent_id)
        brief = await self.brief(settings, chosen, ref, speaker, seen)
        from claw_engine.agent.prompt.system_report import system_report

        return system_report(brief.told, "estimate", now_ms)

    async def _where(self, settings: Settings, chosen: Options, speaker: Speaker) -> Standing:
        if self._standing is None:
            return Standing()
        return await self._standing(
            settings, session_key=speaker.session_key, agent_id=speaker.agent_id,
            workspace=chosen.workspace, source=speaker.source, extra=speaker.extra,
        )  # fmt: skip

    def _stated(self, settings: Settings) -> _Stated:
        # A session that chose its model has settings of its own, but not these.
        parts = (settings.commands, settings.resolved, settings.agents.defaults.models)
        known = self._known
        if known is None or any(a is not b for a, b in zip(known[0], parts, strict=True)):
            known = self._known = (parts, _stated_of(settings))
        return known[1]


class _Stated(Struct, frozen=True):
    """What the settings say for all runs."""

    model: str
    aliases: tuple[tuple[str, str], ...]
    owners: tuple[str, ...]


def _stated_of(settings: Settings) -> _Stated:
    aliases = (
        (entry.alias, name)
        for name, entry in settings.agents.defaults.models.items()
        if entry.alias
    )
    commands = settings.commands
    owners = commands.owner_allow_from
    if commands.owner_display == "hash":
        owners = tuple(shown_hash(owner, commands.owner_display_secret or "") for owner in owners)
    return _Stated(_default_model(settings.resolved), tuple(sorted(aliases)), owners)


def shown_hash(owner: str, secret: str) -> str:
    """A sender as twelve hex digits: keyed by `secret`, or a plain hash without one."""
    data = owner.encode("utf-8", "replace")
    key = secret.encode("utf-8", "replace")
    made = hmac.new(key, data, "sha256") if secret else hashlib.sha256(data)
    return made.hexdigest()[:OWNER_DIGITS]


def boxed(standing: Standing) -> Boxed | None:
    """The sandbox of a run as the prompt describes it."""
    box = standing.box
    if box is None:
        return None
    if box.backend is None:
        return Boxed("", box.workdir, box.access.value, broken=box.broken or "no reason is known")
    files = ""
    if box.access is WorkspaceAccess.READ:
        files = AGENT_MOUNT if box.backend is Backend.DOCKER else box.agent_workspace
    return Boxed(
        box.backend.value, box.workdir, box.access.value, files,
        box.settings.docker.network, _elevated(standing.elevated),
    )  # fmt: skip


def _elevated(level: str) -> Elevated:
    return "full" if level == "full" else "off" if level == "off" else "ask"


def _default_model(resolved: Mapping[str, object]) -> str:
    """What the file names, whatever a session chose for itself."""
    found: object = resolved
    for step in ("agents", "defaults", "model"):
        found = found.get(step) if isinstance(found, Mapping) else None
    if isinstance(found, Mapping):
        found = found.get("primary")
    return found if isinstance(found, str) else ""


def _surface(extra: Mapping[str, object]) -> Surface:
    if INBOUND_FIELD not in extra:
        return NOWHERE
    from claw_engine.agent.prompt.inbound import surface_of  # only channels tell

    return surface_of(extra)


def _word(value: object) -> str:
    return value if value in ("on", "stream") and isinstance(value, str) else ""
