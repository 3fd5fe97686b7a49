"""The session index: every agent's sessions.json behind one door; owner of session entries.

Reads come from memory. Changes go through `update(key, fn)`; nobody else writes an entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from claw_engine.events import Event
from claw_engine.paths import StateDir
from claw_engine.sessions.agent_index import AgentIndex
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.events import SessionsChanged
from claw_engine.sessions.keys import MAIN, SessionKey, canonical, chat_type, normalise_agent_id
from claw_engine.sessions.table import newest_first
from claw_engine.storage.foreign_lock import FileLocks
from claw_engine.world import World

SLICE = 256
"""Entries looked at before other tasks get a turn."""
Keyed: TypeAlias = list[tuple[int, str, int]]  # inside the class `list` is the method


def _nobody(event: Event) -> None:
    """Default publisher: nobody follows."""


class SessionIndex:
    """Entries of all agents, by session key in any spelling. Loop thread only."""

    def __init__(
        self,
        world: World,
        state_dir: StateDir,
        publish: Callable[[Event], None] = _nobody,
        default_agent: str = MAIN,
        locks: FileLocks | None = None,
    ) -> None:
        self._world = world
        self._state_dir = state_dir
        self._publish = publish
        self._locks = locks or FileLocks(world)
        self._global_scope = False
        self._default_agent = default_agent
        self._agents: dict[str, AgentIndex] = {}
        self._loading = asyncio.Lock()
        self._ordered: tuple[list[SessionEntry], list[SessionEntry]] = ([], [])

    def key(self, key: str | SessionKey) -> SessionKey:
        """The canonical key. Raises InvalidSessionKey."""
        found = canonical(key, self._default_agent)
        if self._global_scope and found.is_main:
            return canonical("global", found.agent_id)
        return found

    def configure(self, default_agent: str, *, global_scope: bool) -> None:
        """Which agent bare keys belong to, and whether all main sessions are one."""
        self._default_agent, self._global_scope = default_agent, global_scope

    async def load(self, agent_id: str) -> None:
        """Read one agent's file, once. Raises StateDiskError."""
        async with self._loading:
            if agent_id in self._agents:
                return
            state = self._state_dir
            agent = AgentIndex(
                self._world,
                agent_id,
                state.sessions_json(agent_id),
                state.sessions_journal(agent_id),
                self._locks,
                self._publish,
            )
            await agent.load()
            self._agents[agent_id] = agent

    async def load_all(self) -> None:
        """Read the files of every agent that has a folder, and of the default agent."""
        disk, folder = self._world.disk, self._state_dir.agents_dir
        names = await disk.run(lambda: disk.listdir(folder) if disk.exists(folder) else [])
        wanted = {name for name in names if normalise_agent_id(name) == name}
        for name in sorted(wanted | {self._default_agent}):
            await self.load(name)

    def list(self) -> tuple[SessionEntry, ...]:
        """All entries, newest first."""
        agents = self._agents.values()
        return tuple(newest_first(entry for agent in agents for entry in agent.entries()))

    async def newest_first(self) -> Sequence[SessionEntry]:
        """As `list`, but other tasks get their turn: thousands of entries take a while."""
        everything = [entry for agent in self._agents.values() for entry in agent.entries()]
        before, found = self._ordered
        if everything == before:  # entries are the same objects while nothing changed
            return found
        keyed: Keyed = []
        for number, entry in enumerate(everything):
            keyed.append((-entry.updated_at, entry.key, number))
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        keyed.sort()
        found = [everything[number] for _, _, number in keyed]
        self._ordered = (everything, found)
        return found

    def agents(self) -> tuple[str, ...]:
        """Agents whose index is loaded."""
        return tuple(self._agents)

    def of_agent(self, agent_id: str) -> tuple[SessionEntry, ...]:
        """Entries of one agent's file, newest first."""
        agent = self._agents.get(agent_id)
        return tuple(newest_first(agent.entries())) if agent is not None else ()

    def get(self, key: str | SessionKey) -> SessionEntry | None:
        """The entry of a session, or None. Raises InvalidSessionKey."""
        wanted = self.key(key)
        agent = self._agents.get(wanted.agent_id)
        return agent.get(wanted.text) if agent is not None else None

    async def ensure(self, key: str | SessionKey) -> SessionEntry:
        """The entry of a session; made with a new session id when there is none."""
        wanted = self.key(key)
        agent = await self._agent(wanted.agent_id)
        entry = agent.get(wanted.text)
        if entry is not None and entry.session_id:
            return entry
        session_id = self._world.ids.uuid()
        kind = chat_type(wanted)
        fresh = (entry or SessionEntry(wanted.text)).replace(
            sessionId=session_id,
            updatedAt=self._world.clock.now_ms(),
            sessionFile=f"{session_id}.jsonl",
            chatType=None if kind == "unknown" else kind,
        )
        return self._put(agent, fresh)

    async def update(
        self, key: str | SessionKey, fn: Callable[[SessionEntry], SessionEntry]
    ) -> SessionEntry:
        """Change an entry (made first if missing); `updatedAt` follows unless nothing changed.

        `fn` is synchronous and sees the newest entry. Durable soon (about 0.2 s), at once after
        `flush`.
        """
        old = await self.ensure(key)
        new = fn(old)
        if new.raw == old.raw:
            return old
        if new.raw.get("updatedAt") == old.raw.get("updatedAt"):
            new = new.replace(updatedAt=max(old.updated_at, self._world.clock.now_ms()))
        agent = self._agents[self.key(key).agent_id]
        return self._put(agent, SessionEntry(old.key, new.raw))

    async def remove(self, key: str | SessionKey) -> SessionEntry | None:
        """Take an entry out; what it was. Raises InvalidSessionKey."""
        wanted = self.key(key)
        agent = await self._agent(wanted.agent_id)
        old = agent.get(wanted.text)
        if old is not None:
            agent.remove(wanted.text)
            self._publish(SessionsChanged(frozenset({wanted.text})))
        return old

    async def flush(self) -> None:
        """Wait until every sessions.json holds every change. Raises StateDiskError, LockHeld."""
        for agent in tuple(self._agents.values()):
            await agent.flush()

    async def commit(self, agent_id: str) -> None:
        """Wait until an agent's changes would survive a crash. Raises StateDiskError, LockHeld."""
        agent = self._agents.get(agent_id)
        if agent is not None:
            await agent.commit()

    async def close(self) -> None:
        """Write what is left; never raises (failures were told as notices)."""
        for agent in tuple(self._agents.values()):
            await agent.close()

    async def _agent(self, agent_id: str) -> AgentIndex:
        if agent_id not in self._agents:
            await self.load(agent_id)
        return self._agents[agent_id]

    def _put(self, agent: AgentIndex, entry: SessionEntry) -> SessionEntry:
        agent.put(entry)
        self._publish(SessionsChanged(frozenset({entry.key})))
        return entry
