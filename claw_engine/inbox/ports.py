"""What the inbox needs from below and beside it, and what it is wired to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from claw_engine.agent.ports import Conversation
from claw_engine.agent.run import AgentRuntime
from claw_engine.events import Event
from claw_engine.inbox.model import Accepted, InboundMessage
from claw_engine.lanes import Lanes
from claw_engine.protocol.trace import TraceEvent
from claw_engine.runs import Runs
from claw_engine.sessions.entry import SessionEntry
from claw_engine.world import World

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings


class JournalPort(Protocol):
    """All return (`mark_soon`: its future ends) once durable and raise StateDiskError."""

    async def accept(self, message: InboundMessage) -> Accepted: ...
    async def mark(self, run_id: str, kind: str, detail: str = "") -> None: ...
    def mark_soon(self, run_id: str, kind: str, detail: str = "") -> asyncio.Future[None]: ...
    async def sync(self) -> None: ...


class SessionsPort(Protocol):
    def get(self, key: str) -> SessionEntry | None: ...
    async def transcript(self, key: str) -> Conversation: ...
    async def update(
        self, key: str, fn: Callable[[SessionEntry], SessionEntry]
    ) -> SessionEntry: ...


class ApprovalCanceller(Protocol):
    async def cancel(self, run_id: str, reason: str) -> object:
        """Expire what a run still asks for."""
        ...

    def unanswered(self, run_id: str) -> Collection[str]:
        """Calls that still waited for the operator when an engine died: they did nothing."""
        ...


class DispatchDeps(Struct, frozen=True):
    """Everything the dispatcher is wired to. `settings` gives the newest generation."""

    world: World
    publish: Callable[[Event], None]
    runs: Runs
    lanes: Lanes
    journal: JournalPort
    sessions: SessionsPort
    agent: AgentRuntime
    approvals: ApprovalCanceller
    settings: Callable[[], Settings]
    record: Callable[[TraceEvent], None] = lambda event: None
    """Takes down every step of every run."""
