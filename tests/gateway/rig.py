"""A gateway over small fakes of the rooms below: real bus, lanes, runs, dispatcher and door."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from claw_engine.approvals.answers import Answer
from claw_engine.approvals.grants import Wanted
from claw_engine.approvals.model import (
    ApprovalAsk,
    ApprovalKind,
    ApprovalRecord,
    Binding,
    Decision,
    Status,
)
from claw_engine.config.sections.gateway import GatewayAuth, GatewaySettings
from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.events import Event, EventBus
from claw_engine.gateway.gateway import PORT_HARD_LIMIT, Gateway
from claw_engine.gateway.outbox import HARD_LIMIT, SOFT_LIMIT
from claw_engine.gateway.ports import (
    GatewayParts,
    History,
    RunReport,
    SessionNews,
    SessionRow,
    Submission,
    Taken,
)
from claw_engine.lanes import Lanes
from claw_engine.paths import StateDir
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import Run, Runs, RunState
from claw_engine.world import World
from tests.support.fakes import fake_world

TOKEN = "capture-token-0123456789abcdef"
"""The port's token: the one of the recordings."""


class FakeIntake:
    """Accepts messages; a test ends their runs."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.submitted: list[Submission] = []
        self.ended: dict[str, asyncio.Future[RunReport]] = {}
        self.traces: list[list[TraceEvent]] = []
        self.hold: asyncio.Event | None = None

    async def submit(self, message: Submission) -> Taken:
        if self.hold is not None:
            await self.hold.wait()
        self.submitted.append(message)
        self.ended[message.run_id] = asyncio.get_running_loop().create_future()
        self._runs.create(
            message.run_id,
            session_key=message.session_key,
            agent_id="main",
            lane="main",
            settings=None,
        )
        return Taken()

    def finish(self, run_id: str, text: str = "hi", status: str = "done") -> None:
        run = self._runs.get(run_id)
        if run is not None:
            self._runs.set_state(run, RunState(status), "test")
        error = ("It broke.", "Mend it.") if status == "failed" else None
        report = RunReport(run_id, status, text, "stop", error, 1, 2, 1, {"total": 3})
        self.ended[run_id].set_result(report)

    def known(self, run_id: str) -> Literal["active", "ended"] | None:
        future = self.ended.get(run_id)
        return None if future is None else "ended" if future.done() else "active"

    def abort(self, session_key: str, run_id: str | None) -> Sequence[str]:
        found = [
            run.id
            for run in self._runs.of_session(session_key)
            if run_id is None or run.id == run_id
        ]
        for found_id in found:
            self.finish(found_id, "", "aborted")
        return found

    async def wait(self, run_id: str, timeout_s: float | None) -> RunReport | None:
        if timeout_s == 0 and not self.ended[run_id].done():
            return None
        return await asyncio.shield(self.ended[run_id])

    def live(self, session_key: str | None) -> Sequence[Sequence[TraceEvent]]:
        return [t for t in self.traces if session_key in (None, t[0].session_key)]


class FakeNews(Event, frozen=True):
    """What the sessions room would tell."""

    topic: ClassVar[str] = "sessions"
    news: SessionNews


class FakeSessions:
    def __init__(self) -> None:
        self.stored: list[SessionRow] = []
        self.messages: dict[str, list[Mapping[str, object]]] = {}

    def canonical(self, key: str) -> str:
        return key if key.startswith("agent:") else f"agent:main:{key}"

    async def rows(self, limit: int | None = None) -> Sequence[SessionRow]:
        return self.stored[:limit]

    async def index(self) -> Sequence[tuple[str, int]]:
        return [(row.key, row.updated_at) for row in self.stored]

    def row(self, key: str) -> SessionRow | None:
        return next((row for row in self.stored if row.key == key), None)

    def news(self, event: Event) -> SessionNews | None:
        return event.news if isinstance(event, FakeNews) else None

    async def history(self, key: str, limit: int) -> History:
        return History("s1" if key in self.messages else None, self.messages.get(key, [])[-limit:])


class FakeApprovals:
    def __init__(self) -> None:
        self.records: dict[str, ApprovalRecord] = {}

    def pending(self) -> Sequence[ApprovalRecord]:
        return [r for r in self.records.values() if r.status is Status.PENDING]

    def get(self, id_or_prefix: str) -> ApprovalRecord | None:
        return self.records.get(id_or_prefix)

    async def resolve(
        self,
        approval_id: str,
        decision: Decision,
        by: str,
        reason: str = "",
        grant: Wanted | None = None,
    ) -> ApprovalRecord:
        found = self.records.get(approval_id)
        if found is None or found.status is not Status.PENDING:
            raise InvalidRequest("unknown approval id")
        decided = ApprovalRecord(
            found.id, found.ask, found.created_at_ms, found.expires_at_ms,
            Status.RESOLVED, decision, by, reason, 5,
        )  # fmt: skip
        self.records[approval_id] = decided
        return decided

    async def resolve_many(
        self, approval_ids: Sequence[str], answer: Answer
    ) -> Sequence[ApprovalRecord | ClawError]:
        out: list[ApprovalRecord | ClawError] = []
        for one in approval_ids:
            try:
                out.append(await self.resolve(one, answer.decision, answer.by, answer.reason))
            except ClawError as error:
                out.append(error)
        return out

    async def open(
        self, ask: ApprovalAsk, timeout_ms: int | None = None, approval_id: str | None = None
    ) -> ApprovalRecord:
        found = ApprovalRecord(approval_id or f"a{len(self.records)}", ask, 1, 2)
        self.records[found.id] = found
        return found

    async def wait(self, approval_id: str) -> ApprovalRecord:
        if approval_id not in self.records:
            raise InvalidRequest("approval expired or not found")
        return self.records[approval_id]

    async def withdraw(self, approval_id: str, reason: str) -> None:
        del self.records[approval_id]

    async def history(self, limit: int) -> Sequence[ApprovalRecord]:
        return list(self.records.values())[:limit]


class FakePauses:
    """Pauses the real lanes; what is durable about it is not ours."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    async def pause(self) -> None:
        self._lanes.pause()

    async def resume(self) -> None:
        self._lanes.resume()

    async def configure(self, lane: str, width: int | None) -> int:
        self._lanes.configure(lane, width or 1)
        return width or 1


class FakeModels:
    def current(self) -> Mapping[str, object]:
        return {"name": "rehearsal/stage", "provider": "rehearsal", "isAI": False, "error": None}

    def rows(self) -> Sequence[Mapping[str, object]]:
        return [{"id": "stage", "provider": "rehearsal"}]


class FakeConfig:
    async def snapshot(self) -> Mapping[str, object]:
        return {"path": "openclaw.json", "exists": False, "parsed": {}}


@dataclass
class FakeHost:
    state_dir: str
    version: str = "0.1.0"
    mode: Literal["embedded", "headless"] = "headless"
    started_ms: int = 0
    permission_mode: str = "guarded"
    bypass_warning: str | None = "approvals can be bypassed by allowed commands"
    stopped: list[str] = field(default_factory=list)

    def notices(self) -> Sequence[Mapping[str, object]]:
        return []

    def stop(self, when: Literal["now", "idle"]) -> None:
        self.stopped.append(when)

    def restart(self, reason: str, delay_ms: int = 0) -> Mapping[str, object]:
        self.stopped.append(f"restart: {reason}")
        return {"ok": True, "reason": reason, "delayMs": delay_ms, "cooldownMsApplied": 0}

    async def leave_note(self, payload: Mapping[str, object]) -> None:
        self.stopped.append(f"note: {payload.get('message')}")


class Rig:
    """Everything a test touches."""

    def __init__(
        self,
        root: Path,
        world: World | None = None,
        *,
        env: Mapping[str, str] | None = None,
        soft_limit: int = SOFT_LIMIT,
        hard_limit: int = HARD_LIMIT,
        port_hard_limit: int = PORT_HARD_LIMIT,
        settings: GatewaySettings | None = None,
    ) -> None:
        self.settings = settings or GatewaySettings(auth=GatewayAuth(token=TOKEN))
        self.world = world or fake_world()
        self.state_dir = StateDir(root)
        self.bus = EventBus()
        self.runs = Runs(self.world.clock, self.bus.publish)
        self.lanes = Lanes(self.world.clock, self.bus.publish)
        self.intake = FakeIntake(self.runs)
        self.sessions = FakeSessions()
        self.approvals = FakeApprovals()
        self.host = FakeHost(str(root), started_ms=self.world.clock.now_ms())
        parts = GatewayParts(
            clock=self.world.clock,
            ids=self.world.ids,
            bus=self.bus,
            runs=self.runs,
            lanes=self.lanes,
            pauses=FakePauses(self.lanes),
            intake=self.intake,
            sessions=self.sessions,
            approvals=self.approvals,
            models=FakeModels(),
            config=FakeConfig(),
            host=self.host,
        )
        self.gateway = Gateway(
            self.world, parts, self.state_dir, env or {},
            soft_limit=soft_limit, hard_limit=hard_limit, port_hard_limit=port_hard_limit,
            settings=lambda: self.settings,
        )  # fmt: skip

    async def open(self) -> Path:
        self.gateway.start()
        return await self.gateway.open_door()

    async def serve(self) -> int:
        """Open the network port too; its number."""
        number = self.gateway.port.bind(0)
        await self.gateway.port.serve()
        return number

    async def close(self) -> None:
        await self.gateway.close("test over")

    def run(self, run_id: str, session_key: str = "agent:main:main") -> Run:
        return self.runs.create(
            run_id, session_key=session_key, agent_id="main", lane="main", settings=None
        )


class Tracer:
    """Makes the trace events of one run, numbered."""

    def __init__(self, run_id: str, session_key: str = "agent:main:main", ts: int = 1000) -> None:
        self.run_id = run_id
        self.session_key = session_key
        self.ts = ts
        self.seq = 0

    def __call__(self, kind: TraceKind, _later: int = 0, **data: object) -> TraceEvent:
        self.seq += 1
        self.ts += _later
        return TraceEvent(self.run_id, self.session_key, self.seq, self.ts, kind, data)


def approval(approval_id: str = "a1", **changes: object) -> ApprovalRecord:
    ask = ApprovalAsk(
        ApprovalKind.EXEC, "du -sh *", "/tmp", "main", "agent:main:main", "r1", "t1", "to see",
        Binding("du -sh *", "/tmp", "/tmp", (1, 2), "h"),
    )  # fmt: skip
    fields: dict[str, object] = {"id": approval_id, "ask": ask, "created_at_ms": 1,
                                 "expires_at_ms": 9, **changes}  # fmt: skip
    return ApprovalRecord(**fields)  # type: ignore[arg-type]  # a table of overrides in tests
