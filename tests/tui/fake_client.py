"""An engine on a script: implements `client.base.Client` with frames of the real shapes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count

from claw_engine.client.base import CLIENT_STATE_EVENT, ClientError, ConnectionLost
from claw_engine.protocol.frames import ErrorShape, EventFrame

NOW = 1_796_047_320_000
"""The fake clock's start, ms since the epoch: 2026-11-30 14:02 UTC."""
MAIN = "agent:main:main"
TELEGRAM = "agent:main:telegram:direct:42"
BYPASS = (
    "approvals can be bypassed by allowed commands: children are not confined yet, an allowed "
    "program can do whatever your account can"
)


class FakeClock:
    def __init__(self) -> None:
        self.ms = NOW
        self.seconds = 1000.0

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.ms += round(seconds * 1000)


def status(**over: object) -> dict[str, object]:
    base: dict[str, object] = {
        "version": "0.1.0",
        "pid": 4242,
        "stateDir": "/home/op/.state",
        "host": "nas",
        "uptimeMs": 60_000,
        "mode": "embedded",
        "model": {
            "name": "rehearsal/stage",
            "provider": "rehearsal",
            "id": "stage",
            "isAI": False,
            "contextWindow": 200_000,
            "error": None,
        },
        "permissionMode": "guarded",
        "bypassWarning": BYPASS,
        "paused": False,
        "runs": {"active": 0, "queued": 0, "parked": 0},
        "approvals": {"pending": 0, "nextExpiresAtMs": None},
        "lanes": [lane("main", 4), lane("cron", 1), lane("subagent", 8)],
        "notices": [],
        "sessions": {"count": 0, "recent": []},
    }
    return {**base, **over}


def lane(
    name: str, width: int, active: int = 0, queued: int = 0, parked: int = 0, wait: int = 0
) -> dict[str, object]:
    return {
        "lane": name,
        "width": width,
        "active": active,
        "queued": queued,
        "parked": parked,
        "lastWaitMs": wait,
    }


def session(key: str, minutes_ago: int = 0, **over: object) -> dict[str, object]:
    return {
        "key": key,
        "sessionId": f"id-{key}",
        "updatedAt": NOW - minutes_ago * 60_000,
        "state": "idle",
        "activeRunId": None,
        **over,
    }


def record(
    approval_id: str, command: str, *, seconds: int = 112, **over: object
) -> dict[str, object]:
    """An approval record as exec.approval.list and its events carry it."""
    request: dict[str, object] = {
        "kind": "exec",
        "command": command,
        "cwd": "/volume1",
        "host": "gateway",
        "sandbox": "none",
        "agentId": "main",
        "sessionKey": TELEGRAM,
        "runId": "7f3a9c",
        "toolCallId": "call-1",
        "why": "I'll delete the old backup you said you no longer need.",
        "envChanges": [],
        "redirections": [],
        "reasons": [],
        "resolvedPath": None,
        "segments": [
            {
                "text": command,
                "argv": command.split(),
                "resolved": "/usr/bin/" + (command.split() or ["x"])[0],
                "rule": None,
                "why": "no rule matches",
                "risks": [],
            }
        ],
        "always": {
            "patterns": ["/usr/bin/" + (command.split() or ["x"])[0]],
            "refusal": None,
            "recentMatches": [],
        },
    }
    request.update(over)
    return {
        "id": approval_id,
        "createdAtMs": NOW,
        "expiresAtMs": NOW + seconds * 1000,
        "status": "pending",
        "decision": None,
        "resolvedBy": "",
        "reason": "",
        "decidedAtMs": None,
        "request": request,
    }


Answer = Callable[[Mapping[str, object]], Mapping[str, object]]


class FakeClient:
    """`answers` maps methods to payloads or functions; `calls` records what was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.answers: dict[str, Mapping[str, object] | Answer | Exception] = {
            "status": status(),
            "sessions.list": {"ts": NOW, "count": 1, "sessions": [session(MAIN)]},
            "chat.history": {
                "sessionKey": MAIN,
                "sessionId": None,
                "messages": [],
                "thinkingLevel": "off",
            },
            "trace.subscribe": {"live": []},
            "exec.approval.list": {"approvals": []},
            "approval.history": {"entries": []},
            "exec.approvals.rules": {"rules": []},
            "runs.interrupted": {"runs": []},
            "chat.send": {"runId": "r1", "status": "started"},
            "chat.abort": {"ok": True, "aborted": True, "runIds": ["r1"]},
            "runs.stopAll": {"runIds": ["r1", "r2"]},
            "lanes.pause": {},
            "lanes.resume": {},
        }
        self._queue: asyncio.Queue[EventFrame | None] = asyncio.Queue()
        self._connected = False
        self.hello: Mapping[str, object] = {}
        self.refuse_connect = False
        self._idle = False
        self._seq = count(1)

    @property
    def connected(self) -> bool:
        return self._connected

    async def connect(self) -> Mapping[str, object]:
        if self.refuse_connect:
            raise ConnectionLost("nobody answers")
        self._connected = True
        self.hello = {
            "type": "hello-ok",
            "protocol": 3,
            "server": {"version": "0.1.0", "connId": "c1"},
            "features": {
                "methods": sorted([*self.answers, "exec.approval.resolve"]),
                "events": ["trace"],
            },
            "snapshot": self.answers["status"],
            "policy": {},
        }
        return self.hello

    async def call(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        timeout: float | None = 30.0,
    ) -> dict[str, object]:
        self.calls.append((method, dict(params or {})))
        if not self._connected:
            raise ConnectionLost("the engine went away")
        if method == "exec.approval.resolve" and method not in self.answers:
            return self._resolve(params or {})
        answer = self.answers.get(method)
        if answer is None:
            raise ClientError(ErrorShape("INVALID_REQUEST", f"unknown method: {method}"))
        if isinstance(answer, Exception):
            raise answer
        return dict(answer(params or {}) if callable(answer) else answer)

    def _resolve(self, params: Mapping[str, object]) -> dict[str, object]:
        done = {
            **record(str(params["id"]), "decided"),
            "status": "resolved",
            "decision": params["decision"],
            "resolvedBy": "console",
            "decidedAtMs": NOW,
            "reason": params.get("reason", ""),
        }
        self.emit("exec.approval.resolved", done)
        return {"ok": True, "record": done}

    async def events(self) -> AsyncIterator[EventFrame]:
        while True:
            self._idle = self._queue.empty()
            frame = await self._queue.get()
            self._idle = False
            if frame is None:
                return
            yield frame

    @property
    def drained(self) -> bool:
        """Whether the console has taken everything that was emitted."""
        return self._idle and self._queue.empty()

    async def close(self) -> None:
        self._connected = False
        self._queue.put_nowait(None)

    # ── the script ──────────────────────────────────────────────────────────────────────────

    def emit(self, event: str, payload: object) -> None:
        self._queue.put_nowait(EventFrame(event, payload, next(self._seq)))

    def lose(self, reason: str = "the engine closed the connection") -> None:
        self._connected = False
        self.emit(CLIENT_STATE_EVENT, {"state": "disconnected", "reason": reason})

    def asked(self, method: str) -> list[dict[str, object]]:
        return [params for name, params in self.calls if name == method]

    def trace(self, *events: dict[str, object]) -> None:
        for event in events:
            self.emit("trace", event)


class Script:
    """Trace events of one run with running sequence numbers and times."""

    def __init__(self, run_id: str = "7f3a9c", key: str = MAIN, start: int = NOW) -> None:
        self.run_id, self.key, self.ts = run_id, key, start
        self._seq = count(1)

    def __call__(self, kind: str, ms: int = 100, **data: object) -> dict[str, object]:
        self.ts += ms
        return {
            "runId": self.run_id,
            "sessionKey": self.key,
            "seq": next(self._seq),
            "ts": self.ts,
            "kind": kind,
            "data": data,
        }

    def opening(self, message: str) -> list[dict[str, object]]:
        return [
            self("run.queued", message=message, source="console", lane="main", waitingBehind=0),
            self(
                "run.started",
                model="rehearsal/stage",
                provider="rehearsal",
                isAI=False,
                waitMs=12,
                cause="message",
            ),
            self("run.state", prev="queued", new="building", reason=""),
            self(
                "call.started",
                callId="c1",
                cause="turn",
                model="rehearsal/stage",
                parts=[],
                bytes=9000,
                tokens=2400,
                estimated=True,
            ),
        ]

    def disk_story(self) -> list[dict[str, object]]:
        """The sketch of design/console.md, up to the waiting request."""
        return [
            *self.opening("what's eating my disk?"),
            self("reasoning", callId="c1", delta="I'll look at the largest folders "),
            self("reasoning", 1100, callId="c1", delta="first, then at the backups."),
            self(
                "call.ended",
                callId="c1",
                stopReason="toolUse",
                usage={
                    "input": 1600,
                    "output": 300,
                    "cacheRead": 17_800,
                    "cacheWrite": 0,
                    "total": 92_000,
                },
                ttftMs=300,
                durationMs=1400,
                error=None,
            ),
            self(
                "tool.started",
                callId="c1",
                toolCallId="t1",
                name="exec",
                args={"command": "du -sh ~/*"},
            ),
            self("tool.waiting", toolCallId="t1", approvalId="a0", expiresAtMs=self.ts + 900_000),
            self(
                "tool.decided",
                toolCallId="t1",
                approvalId="a0",
                decision="allow-once",
                by="console",
                reason="",
            ),
            self("tool.output", toolCallId="t1", delta="812G  /volume1/photos\n"),
            self(
                "tool.ended",
                800,
                toolCallId="t1",
                name="exec",
                status="ok",
                text="812G  /volume1/photos\n 96G  /volume1/backup",
                exitCode=0,
                durationMs=800,
                decision="allow-once",
            ),
            self(
                "tool.started",
                callId="c1",
                toolCallId="t2",
                name="read",
                args={"path": "backup/README.md"},
            ),
            self(
                "tool.ended",
                toolCallId="t2",
                name="read",
                status="ok",
                text="",
                exitCode=None,
                durationMs=4,
                decision=None,
            ),
            self(
                "text",
                callId="c2",
                delta="Photos take **812 GB**. There is an old backup "
                "of 90 GB that nothing has read since May; ",
            ),
            self(
                "call.ended",
                callId="c2",
                stopReason="toolUse",
                usage=None,
                ttftMs=None,
                durationMs=900,
                error=None,
            ),
            self(
                "tool.started",
                callId="c2",
                toolCallId="t3",
                name="exec",
                args={"command": "rm -rf /volume1/backup/old"},
            ),
            self("tool.waiting", toolCallId="t3", approvalId="a1", expiresAtMs=NOW + 112_000),
            self("run.state", prev="tool", new="parked", reason="approval"),
        ]
