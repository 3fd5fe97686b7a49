"""The health snapshot in OpenClaw's shape. What is costly in it is looked at anew every 2 s."""

from __future__ import annotations

import os
from collections.abc import Sequence

from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session_rows import default_agent, session_index
from claw_engine.gateway.translate4 import agent_of

KEPT_S = 2.0
RECENT = 5


class Health:
    """Use: `await snapshot()`; `brief()` is what anybody may know."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts = parts
        self._index: Sequence[tuple[str, int]] = ()
        self._looked: float | None = None
        self._grouped: tuple[Sequence[tuple[str, int]], dict[str, list[tuple[str, int]]]] = ((), {})

    def brief(self) -> dict[str, object]:
        """That it is alive."""
        parts = self._parts
        now = parts.clock.now_ms()
        return {
            "ok": True,
            "ts": now,
            "pid": os.getpid(),
            "version": parts.host.version,
            "uptimeMs": max(0, now - parts.host.started_ms),
        }

    async def snapshot(self, *, fresh: bool = False) -> dict[str, object]:
        """With agents and sessions; there are no channels and no heartbeat yet."""
        started = self._parts.clock.monotonic()
        if fresh or self._looked is None or started - self._looked >= KEPT_S:
            self._index = await session_index(self._parts)
            self._looked = started
        brief = self.brief()
        now = int(str(brief["ts"]))
        took = self._parts.clock.monotonic() - started
        sessions = self._sessions(self._index, now)
        return {
            **brief,
            "durationMs": round(took * 1000),
            "channels": {},
            "channelOrder": [],
            "channelLabels": {},
            "heartbeatSeconds": 0,
            "defaultAgentId": default_agent(self._parts),
            "agents": self._agents(now),
            "sessions": sessions,
        }

    def _agents(self, now: int) -> list[dict[str, object]]:
        first = default_agent(self._parts)
        by_agent: dict[str, list[tuple[str, int]]] = {first: []}
        index, of_agents = self._grouped
        if index is not self._index:
            of_agents = {}
            for row in self._index:
                of_agents.setdefault(agent_of(row[0]), []).append(row)
            self._grouped = (self._index, of_agents)
        by_agent |= of_agents
        return [
            {
                "agentId": agent,
                "isDefault": agent == first,
                "heartbeat": {"enabled": False, "every": "0m", "everyMs": None},
                "sessions": self._sessions(rows, now, agent),
            }
            for agent, rows in by_agent.items()
        ]

    def _sessions(
        self, rows: Sequence[tuple[str, int]], now: int, agent: str = "main"
    ) -> dict[str, object]:
        path = f"{self._parts.host.state_dir}/agents/{agent}/sessions/sessions.json"
        recent = [
            {"key": key, "updatedAt": updated, "age": max(0, now - updated)}
            for key, updated in rows[:RECENT]
        ]
        return {"path": path, "count": len(rows), "recent": recent}
