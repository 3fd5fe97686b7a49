"""Thin adapters for what OpenClaw's clients ask: agents, their files, skills, commands, edits.

Nothing is decided here but which files a client may see: those that prompts are made from.
"""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from claw_engine.config.load import ConfigStore, Reloaded
from claw_engine.config.sections.agents import AgentEntry
from claw_engine.config.settings import Settings
from claw_engine.errors import InvalidRequest
from claw_engine.gateway.client_ports import AgentFile, AgentInfo, Began, CommandInfo
from claw_engine.inbox.commands import STOP_COMMAND, Commands
from claw_engine.inbox.session_commands import stopped
from claw_engine.messages import AssistantMessage, TextBlock
from claw_engine.paths import StateDir, contains
from claw_engine.sessions.keys import normalise_agent_id
from claw_engine.sessions.routing import routes_of, workspace_of
from claw_engine.sessions.store import Sessions
from claw_engine.skills.door import SkillDoor
from claw_engine.storage.errors import disk_error
from claw_engine.world import World

FILES = (
    "AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md",
    "MEMORY.md", "memory.md",
)  # fmt: skip
"""What a client may read and write of a workspace (gateway digest §1.11)."""
OPTIONAL = frozenset({"BOOTSTRAP.md", "MEMORY.md", "memory.md"})
"""Listed when they are there."""
MAX_FILE = 2 * 1024 * 1024
"""Bytes of a file that is shown or taken."""

INJECTED = ("openclaw", "gateway-injected")
"""Provider and model of a message that no model wrote (wire facts §2)."""

_BARE_COMMANDS = frozenset({"/help", "/status", "/whoami", STOP_COMMAND})


class AgentsAdapter:
    """The configured agents as the gateway's `AgentsPort`."""

    def __init__(self, world: World, state: StateDir, settings: Callable[[], Settings]) -> None:
        self._world = world
        self._state = state
        self._settings = settings

    @property
    def default_id(self) -> str:
        return routes_of(self._settings()).default_agent

    @property
    def global_scope(self) -> bool:
        return routes_of(self._settings()).global_scope

    def rows(self) -> Sequence[AgentInfo]:
        routes = routes_of(self._settings())
        rest = [agent for agent in routes.agents if agent != routes.default_agent]
        return [self._info(agent) for agent in (routes.default_agent, *rest)]

    def get(self, agent_id: str) -> AgentInfo:
        return self._info(self._known(agent_id))

    async def files(self, agent_id: str) -> Sequence[AgentFile]:
        folder = self._folder(agent_id)

        def look() -> list[AgentFile]:
            found = [_look(folder, name) for name in FILES]
            seen: set[int] = set()  # where names differ by case only, both may be one file
            out = []
            for file, inode in found:
                if inode in seen or (inode == 0 and file.name in OPTIONAL):
                    continue
                seen |= {inode} - {0}
                out.append(file)
            return out

        return await self._world.disk.run(look)

    async def read_file(self, agent_id: str, name: str) -> AgentFile:
        folder, disk = self._folder(agent_id), self._world.disk
        path = _path(folder, name)

        def read() -> AgentFile:
            _refuse_escape(folder, path)
            file, inode = _look(folder, name)
            if not inode:
                return file
            try:
                data = disk.read_from(path, 0, MAX_FILE + 1)
            except OSError as error:
                raise disk_error(error, path) from error
            _refuse_size(len(data), name)
            text = data.decode("utf-8", "replace")
            return AgentFile(file.name, file.path, file.size, file.updated_ms, text)

        return await disk.run(read)

    async def write_file(self, agent_id: str, name: str, content: str) -> AgentFile:
        folder, disk = self._folder(agent_id), self._world.disk
        path, data = _path(folder, name), content.encode("utf-8", "replace")
        _refuse_size(len(data), name)

        def write() -> AgentFile:
            try:
                disk.mkdir(folder, 0o700)
                _refuse_escape(folder, path)
                disk.replace(path, data, mode=0o600)
            except OSError as error:
                raise disk_error(error, path) from error
            file, _ = _look(folder, name)
            return AgentFile(file.name, file.path, file.size, file.updated_ms, content)

        return await disk.run(write)

    def _known(self, agent_id: str) -> str:
        agent, routes = normalise_agent_id(agent_id), routes_of(self._settings())
        if agent != routes.default_agent and agent not in routes.agents:
            raise InvalidRequest(f'unknown agent id "{agent_id}"')
        return agent

    def _folder(self, agent_id: str) -> Path:
        return workspace_of(self._settings(), self._state, self._known(agent_id))

    def _info(self, agent: str) -> AgentInfo:
        settings = self._settings()
        listed = settings.agents.list
        entry = next((e for e in listed if normalise_agent_id(e.id) == agent), None)
        own = entry.model if entry is not None else None
        defaults = settings.agents.defaults
        model = own if own is not None and own.primary else defaults.model
        return AgentInfo(
            agent,
            str(workspace_of(settings, self._state, agent)),
            model.primary or "",
            tuple(model.fallbacks),
            (entry.name or "") if entry is not None else "",
            _identity(entry),
            defaults.thinking_default or "off",
        )


def _identity(entry: AgentEntry | None) -> dict[str, str]:
    if entry is None:
        return {}
    known = entry.identity
    named = {"name": known.name, "theme": known.theme, "emoji": known.emoji}
    return {field: value for field, value in named.items() if value}


def _path(folder: Path, name: str) -> Path:
    if name not in FILES:
        raise InvalidRequest(f'unsupported file "{name}"', hint=f"There are: {', '.join(FILES)}.")
    return folder / name


def _look(folder: Path, name: str) -> tuple[AgentFile, int]:
    """A file and its inode; 0 when there is none. Disk thread."""
    path = folder / name
    try:
        info = path.lstat()
    except OSError:
        return AgentFile(name, str(path)), 0
    if not stat.S_ISREG(info.st_mode):
        return AgentFile(name, str(path)), 0
    return AgentFile(name, str(path), info.st_size, info.st_mtime_ns // 1_000_000), info.st_ino


def _refuse_escape(folder: Path, path: Path) -> None:
    """Raises InvalidRequest for a link out of the workspace. Disk thread."""
    linked = path.is_symlink() or (path.exists() and path.stat().st_nlink > 1)
    if linked or not contains(folder, path):
        raise InvalidRequest(f"{path.name} is a link; it is not opened from here.")


def _refuse_size(size: int, name: str) -> None:
    if size > MAX_FILE:
        raise InvalidRequest(f"{name} is larger than {MAX_FILE >> 20} MB.")


class CommandsAdapter:
    """The inbox's commands as the gateway's `CommandsPort`."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def rows(self) -> Sequence[CommandInfo]:
        stop = CommandInfo(STOP_COMMAND, "stops what this session is doing", (), False)
        known = [
            CommandInfo(one.name, one.summary, one.aliases, one.name not in _BARE_COMMANDS)
            for one in self._commands.all()
        ]
        return sorted((stop, *known), key=lambda row: row.name)


class SkillsAdapter:
    """The skills as the gateway's `SkillsPort`; `settle` follows a changed configuration."""

    def __init__(
        self, world: World, state: StateDir, shelf: SkillDoor, config: ConfigStore,
        settle: Callable[[Reloaded, bool], None],
    ) -> None:  # fmt: skip
        self._world = world
        self._state = state
        self._shelf = shelf
        self._config = config
        self._settle = settle

    async def status(self, agent_id: str | None) -> Mapping[str, object]:
        from claw_engine.skills.status import status_row  # only for whoever asks

        settings = self._config.settings
        routes = routes_of(settings)
        agent = normalise_agent_id(agent_id) if agent_id is not None else routes.default_agent
        if agent not in (routes.default_agent, *routes.agents):
            raise InvalidRequest(f'unknown agent id "{agent_id}"')
        workspace = workspace_of(settings, self._state, agent)
        skills = await self._world.disk.run(self._shelf.look, settings, agent, workspace)
        listed = {part.name for part in skills.of(None).parts}
        return {
            "workspaceDir": str(workspace),
            "managedSkillsDir": str(self._state.skills_dir),
            "skills": [status_row(v, listed, settings.resolved) for v in skills.verdicts],
        }

    async def switch(self, skill_key: str, *, enabled: bool) -> Mapping[str, object]:
        path = ("skills", "entries", skill_key, "enabled")
        self._settle(await self._config.put(path, enabled), False)
        return {"enabled": enabled}


class EditsAdapter:
    """The session store as the gateway's `EditsPort`; `clear` stops a session's runs."""

    def __init__(
        self, world: World, state: StateDir, sessions: Sessions,
        clear: Callable[[str, float], Awaitable[bool]],
    ) -> None:  # fmt: skip
        self._world = world
        self._state = state
        self._sessions = sessions
        self._clear = clear

    def store_path(self, agent_id: str) -> str:
        return str(self._state.sessions_json(agent_id))

    async def create(self, key: str, parent: str | None) -> Began:
        if parent is not None:
            entry = await self._sessions.fork(parent, key)
        else:
            entry = await self._sessions.index.ensure(key)
        return Began(entry.session_id, entry.raw)

    async def cut(self, key: str, max_lines: int) -> tuple[int, str] | None:
        await stopped(self._clear, key)
        done = await self._sessions.cut(key, max_lines)
        return None if done is None else (done[0], str(done[1]))

    async def inject(self, key: str, text: str, label: str) -> str:
        provider, model = INJECTED
        said = f"[{label}]\n\n{text}" if label else text
        message = AssistantMessage(
            (TextBlock(said),), provider=provider, model=model,
            timestamp=self._world.clock.now_ms(),
        )  # fmt: skip
        transcript = await self._sessions.transcript(key)
        (entry_id,) = await transcript.append(message)
        return entry_id
