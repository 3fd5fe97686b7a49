"""`sessions.list`: every conversation with what it is doing now."""

from __future__ import annotations

from claw_engine.gateway.ports import GatewayParts, SessionRow
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import SessionsListParams
from claw_engine.protocol.names import Scope
from claw_engine.runs import Run, RunState


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def list_sessions(call: Call, params: SessionsListParams) -> Payload:
        rows = await session_rows(parts)
        if params.search:
            needle = params.search.casefold()
            rows = [row for row in rows if _matches(row, needle)]
        shown = rows[: params.limit] if params.limit is not None else rows
        return {"ts": parts.clock.now_ms(), "count": len(rows), "sessions": shown}

    return (method("sessions.list", Scope.READ, SessionsListParams, list_sessions),)


async def session_rows(parts: GatewayParts, limit: int | None = None) -> list[dict[str, object]]:
    """All rows or the newest, newest first; a session whose first run is still going on has one
    too."""
    stored = {row.key: row for row in await parts.sessions.rows(limit)}
    runs: dict[str, list[Run]] = {}
    for run in parts.runs.active():
        runs.setdefault(run.session_key, []).append(run)
        stored.setdefault(run.session_key, SessionRow(run.session_key, None, run.created_ms, {}))
    rows = [_row(row, runs.get(key, [])) for key, row in stored.items()]
    rows.sort(key=lambda row: (-int(str(row["updatedAt"])), str(row["key"])))
    return rows[:limit]


async def session_index(parts: GatewayParts) -> list[tuple[str, int]]:
    """Key and time of all of them, newest first, without looking into any."""
    known = dict(await parts.sessions.index())
    begun = [run for run in parts.runs.active() if run.session_key not in known]
    if not begun:
        return list(known.items())
    known |= {run.session_key: run.created_ms for run in begun}
    return sorted(known.items(), key=lambda row: (-row[1], row[0]))


def _row(row: SessionRow, runs: list[Run]) -> dict[str, object]:
    state, active = _doing(runs)
    return {
        "key": row.key,
        "sessionId": row.session_id,
        "updatedAt": row.updated_at,
        **row.fields,
        "state": state,
        "activeRunId": active,
    }


def _doing(runs: list[Run]) -> tuple[str, str | None]:
    """idle | queued | running | waiting, and the run that is at it."""
    for run in runs:
        if run.state is RunState.PARKED:
            return "waiting", run.id
    for run in runs:
        if run.state is not RunState.QUEUED:
            return "running", run.id
    return ("queued", runs[0].id) if runs else ("idle", None)


def _matches(row: dict[str, object], needle: str) -> bool:
    """Where a search looks: as OpenClaw does (gateway digest §1.11)."""
    fields = ("key", "sessionId", "displayName", "label", "subject")
    return any(needle in str(row.get(name) or "").casefold() for name in fields)
