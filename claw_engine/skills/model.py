"""A skill as its file describes it, and what was found of one. Values only.

Format: Agent Skills' SKILL.md with OpenClaw's `metadata` (agent digest §7.2).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

MAX_NAME = 64
MAX_DESCRIPTION = 1024
"""Characters (Agent Skills specification)."""


class Source(StrEnum):
    """Where a skill lies, the weakest first: of two with one name the later counts."""

    EXTRA = "openclaw-extra"
    BUNDLED = "openclaw-bundled"
    MANAGED = "openclaw-managed"
    PERSONAL = "agents-skills-personal"
    PROJECT = "agents-skills-project"
    WORKSPACE = "openclaw-workspace"


class Requires(Struct, frozen=True):
    """What must be there: programs on the PATH (all of `bins`, one of `any_bins`), variables,
    settings that are not empty, one of these systems (linux, darwin, win32)."""

    bins: tuple[str, ...] = ()
    any_bins: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    os: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.bins or self.any_bins or self.env or self.config or self.os)

    def to_json(self) -> dict[str, object]:
        return {
            "bins": list(self.bins), "anyBins": list(self.any_bins), "env": list(self.env),
            "config": list(self.config), "os": list(self.os),
        }  # fmt: skip


class Install(Struct, frozen=True):
    """A way to get what is missing, as the file words it; we carry none of them out."""

    id: str
    kind: str
    label: str
    bins: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {"id": self.id, "kind": self.kind, "label": self.label, "bins": list(self.bins)}


class Front(Struct, frozen=True):
    """What the head of a SKILL.md says; `warnings` are what was read with leniency."""

    name: str
    description: str
    key: str
    homepage: str = ""
    emoji: str = ""
    primary_env: str = ""
    always: bool = False
    for_model: bool = True
    for_user: bool = True
    requires: Requires = Requires()
    install: tuple[Install, ...] = ()
    warnings: tuple[str, ...] = ()


class Found(Struct, frozen=True):
    """A SKILL.md: `front` is None when it cannot be used, and `problem` says why.

    `path` is the file as it is reached, `folder` the directory it lies in.
    """

    source: Source
    path: str
    folder: str
    front: Front | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        return self.front.name if self.front is not None else self.folder.rpartition("/")[2]


class BadSkill(ValueError):
    """The file is no skill; its text says why, for a person."""
