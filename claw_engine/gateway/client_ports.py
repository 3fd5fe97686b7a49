"""What OpenClaw's own clients ask for beyond a conversation: agents, their files, slash commands.

Interfaces only; the composition root hands in one object for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct


class AgentInfo(Struct, frozen=True):
    """One agent; `model` is `provider/model`, "" when none can answer."""

    id: str
    workspace: str
    model: str = ""
    fallbacks: Sequence[str] = ()
    name: str = ""
    identity: Mapping[str, str] = {}
    thinking: str = "off"


class AgentFile(Struct, frozen=True):
    """A file of an agent's workspace; `size` in bytes, `updated_ms` wall time, None = missing."""

    name: str
    path: str
    size: int | None = None
    updated_ms: int | None = None
    content: str | None = None


class AgentsPort(Protocol):
    """The agents of the configuration. All but `default_id` raise InvalidRequest for others."""

    @property
    def default_id(self) -> str: ...
    @property
    def global_scope(self) -> bool: ...

    def rows(self) -> Sequence[AgentInfo]:
        """All agents, the default one first."""
        ...

    def get(self, agent_id: str) -> AgentInfo: ...

    async def files(self, agent_id: str) -> Sequence[AgentFile]:
        """The files a prompt is made from, without their content."""
        ...

    async def read_file(self, agent_id: str, name: str) -> AgentFile: ...

    async def write_file(self, agent_id: str, name: str, content: str) -> AgentFile: ...


class SkillsPort(Protocol):
    """The skills of an agent. Both raise ClawError."""

    async def status(self, agent_id: str | None) -> Mapping[str, object]:
        """The `skills.status` payload."""
        ...

    async def switch(self, skill_key: str, *, enabled: bool) -> Mapping[str, object]:
        """Write it into the configuration; what stands there now."""
        ...


class CommandInfo(Struct, frozen=True):
    """A slash command; names with their slash."""

    name: str
    summary: str
    aliases: Sequence[str] = ()
    takes_words: bool = True


class CommandsPort(Protocol):
    def rows(self) -> Sequence[CommandInfo]: ...


class Began(Struct, frozen=True):
    """A session that exists now: its id and its entry."""

    session_id: str
    entry: Mapping[str, object]


class EditsPort(Protocol):
    """Changes of sessions that no run makes. All raise ClawError."""

    def store_path(self, agent_id: str) -> str:
        """Where an agent's session index is."""
        ...

    async def create(self, key: str, parent: str | None) -> Began:
        """The session, made when there is none, begun with its parent's talk when one is named."""
        ...

    async def cut(self, key: str, max_lines: int) -> tuple[int, str] | None:
        """Stop the session's runs and keep the newest lines of its transcript: how many, and where
        the old file is; None when there was nothing to cut."""
        ...

    async def inject(self, key: str, text: str, label: str) -> str:
        """Add an assistant's message that no model wrote; its entry id."""
        ...
