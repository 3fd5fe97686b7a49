"""Builds the system prompt of a run: a tuple of parts, the same objects while nothing changed.

Files are looked at for every run (a hop to the disk executor), text is built only when facts or
files differ from the last time. Knows no session content and no provider format.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from msgspec import Struct

from claw_engine.agent.context.tokens import estimate
from claw_engine.agent.prompt.facts import Facts
from claw_engine.agent.prompt.sections import (
    after_files,
    before_files,
    before_skills,
    project_context,
    skills_frame,
)
from claw_engine.agent.prompt.workspace import (
    Injected,
    Workspace,
    WorkspaceFile,
    files_for,
    inject,
    seed,
)
from claw_engine.parts import Part
from claw_engine.world import Clock, Disk

_KEPT_PROMPTS = 16

T = TypeVar("T")

Files: TypeAlias = tuple[WorkspaceFile, ...]


class Limits(Struct, frozen=True):
    """How much of the workspace files may enter the prompt, in characters."""

    per_file: int = 20_000
    total: int = 150_000


class SkillList(Protocol):
    """The skills a run may use, one part each; the same object while nothing changed."""

    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def warning(self) -> str:
        """What the model should know of a list that is not whole, or ""."""
        ...


class SystemPrompt(Struct, frozen=True):
    """The prompt, what each file became in it, and its size."""

    parts: tuple[Part, ...]
    files: tuple[Injected, ...]
    chars: int
    tokens: int


class PromptBuilder:
    """One for the engine; loop thread only."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._workspaces: dict[Path, Workspace] = {}
        self._prompts: OrderedDict[
            tuple[object, ...], tuple[object, SkillList | None, SystemPrompt]
        ] = OrderedDict()

    async def prepare(self, root: Path, *, seeding: bool = True) -> list[str]:
        """Create and seed a workspace the first time it is used. Raises OSError."""
        if root in self._workspaces:
            return []
        workspace = Workspace(self._disk, root)
        written = await self._disk.run(self._seed if seeding else self._make, root)
        self._workspaces[root] = workspace
        return written

    async def look(self, root: Path) -> Files | None:
        """The files of a workspace as they are now, for `build`; None if there is none yet."""
        workspace = self._workspaces.get(root)
        if workspace is None:
            return None
        try:
            return await self._disk.run(workspace.load)
        except OSError:  # `build` says it
            return None

    async def look_with(self, root: Path, more: Callable[[], T]) -> tuple[Files | None, T]:
        """`look`, and `more` on the disk's thread in the same visit; it must not raise."""
        workspace = self._workspaces.get(root)

        def both() -> tuple[Files | None, T]:
            files: Files | None = None
            if workspace is not None:
                with contextlib.suppress(OSError):  # `build` says it
                    files = workspace.load()
            return files, more()

        return await self._disk.run(both)

    async def build(
        self,
        facts: Facts,
        session_key: str,
        limits: Limits,
        files: Files | None = None,
        root: Path | None = None,
        skills: SkillList | None = None,
    ) -> SystemPrompt:
        """The system prompt for a run in `facts.workspace`; `files` are what `look` just saw.

        `root` is the folder of the files, which `prepare` has seen: a sandbox calls it otherwise.
        `skills` are listed if there is a tool to read them with.
        """
        root = root or Path(facts.workspace)
        loaded = files
        if loaded is None:
            loaded = await self._disk.run(self._workspaces[root].load)
        files = files_for(session_key, loaded)
        narrow = len(files) != len(loaded)
        key = (facts, limits, narrow)
        known = self._prompts.get(key)
        # Both hand out the same object while nothing changed: identity is enough.
        if known is not None and known[0] is loaded and known[1] is skills:
            self._prompts.move_to_end(key)
            return known[2]
        prompt = assemble(facts, inject(files, limits.per_file, limits.total), skills)
        self._prompts[key] = (loaded, skills, prompt)
        if len(self._prompts) > _KEPT_PROMPTS:
            self._prompts.popitem(last=False)
        return prompt

    async def file_texts(self, root: Path, limits: Limits) -> dict[str, str]:
        """The text of each file of a prepared workspace, shortened as in the prompt."""
        loaded = await self._disk.run(self._workspaces[root].load)
        injected = inject(loaded, limits.per_file, limits.total)
        return {i.file.name: i.part.text for i in injected if i.file.text is not None}

    def _seed(self, root: Path) -> list[str]:
        return seed(self._disk, self._clock, root)

    def _make(self, root: Path) -> list[str]:
        self._disk.mkdir(root)
        return []


def assemble(
    facts: Facts, files: tuple[Injected, ...], skills: SkillList | None = None
) -> SystemPrompt:
    """Sections, skills and files in order. Pure."""
    parts = before_skills(facts)
    if facts.mode == "none":
        files = ()
    elif skills is not None and skills.parts and facts.has("read"):
        opening, closing = skills_frame(skills.warning)
        parts = (*parts, opening, *skills.parts, closing)
    parts += before_files(facts)
    if files:
        heading = project_context([injected.file.name for injected in files])
        parts = (*parts, heading, *(injected.part for injected in files))
    parts += after_files(facts)
    return SystemPrompt(
        parts, files, sum(len(p.text) for p in parts), sum(estimate(p.text) for p in parts)
    )
