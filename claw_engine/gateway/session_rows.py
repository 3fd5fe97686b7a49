"""The row of a session as clients see it: what is stored, with what its runs do now.

One superset for both protocols (gateway digest §1.11, protocol digest §2.3). Knows no method.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from claw_engine.gateway.ports import GatewayParts, SessionRow
from claw_engine.gateway.translate4 import agent_of
from claw_engine.runs import Run, RunState

THINKING = ("off", "minimal", "low", "medium", "high", "xhigh")

MAIN = "main"
"""The bare key of the default agent's main session."""

SLICE = 64
"""Rows made before other tasks get a turn."""
KEPT = 1000
"""Rows kept although a short list does not ask for them."""

RUNTIME = {
    "id": "auto",
    "cloudPlacementSupported": False,
    "devicePlacementSupported": False,
    "source": "implicit",
}
"""Where runs go under protocol 4: here, and nowhere else."""

_PRIVATE = ("providerOverride", "modelOverride")


async def session_rows(parts: GatewayParts, limit: int | None = None) -> list[dict[str, object]]:
    """All rows or the newest, newest first; a session whose first run is still going on has one
    too. Rows are kept and told again: change a copy."""
    stored = {row.key: row for row in await parts.sessions.rows(limit)}
    known = len(stored)
    runs: dict[str, list[Run]] = {}
    for run in parts.runs.active():
        runs.setdefault(run.session_key, []).append(run)
        stored.setdefault(run.session_key, SessionRow(run.session_key, None, run.created_ms, {}))
    kept, defaults = parts.kept, model_defaults(parts)
    if kept.defaults != defaults or len(kept.rows) > 2 * known + KEPT:
        kept.defaults, kept.rows = defaults, {}
    rows = []
    for number, (key, row) in enumerate(stored.items()):
        if key in runs:
            rows.append(_row(row, runs[key], defaults))
            continue
        told = kept.rows.get(key)
        if told is None or told[0] is not row:
            told = kept.rows[key] = (row, _row(row, (), defaults))
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        rows.append(told[1])
    if len(stored) > known:
        rows.sort(key=lambda row: (-int(str(row["updatedAt"])), str(row["key"])))
    return rows if limit is None else rows[:limit]


async def session_index(parts: GatewayParts) -> Sequence[tuple[str, int]]:
    """Key and time of all of them, newest first, without looking into any."""
    index, runs = await parts.sessions.index(), parts.runs.active()
    if not runs:
        return index
    known = dict(index)
    begun = [run for run in runs if run.session_key not in known]
    if not begun:
        return index
    known |= {run.session_key: run.created_ms for run in begun}
    return sorted(known.items(), key=lambda row: (-row[1], row[0]))


def session_row(parts: GatewayParts, key: str) -> dict[str, object] | None:
    """One session's row; None for one that nobody spoke in. Reads memory only."""
    runs = list(parts.runs.of_session(key))
    row = parts.sessions.row(key)
    if row is None:
        if not runs:
            return None
        row = SessionRow(key, None, runs[0].created_ms, {})
    return _row(row, runs, model_defaults(parts))


def default_agent(parts: GatewayParts) -> str:
    """The agent that bare keys mean."""
    return agent_of(parts.sessions.canonical(MAIN))


def model_defaults(parts: GatewayParts) -> dict[str, object]:
    """`defaults` of a session list: what answers where nothing else was chosen."""
    current = parts.models.current()
    return {
        "modelProvider": current.get("provider"),
        "model": current.get("id") or current.get("name"),
        "contextTokens": current.get("contextWindow") or None,
    }


def defaults4(parts: GatewayParts) -> dict[str, object]:
    """The same as protocol 4 tells it."""
    levels = [{"id": level, "label": level} for level in THINKING]
    return {
        **model_defaults(parts),
        "agentRuntime": RUNTIME,
        "thinkingLevels": levels,
        "thinkingOptions": list(THINKING),
        "thinkingDefault": "off",
        "modelSelectionTarget": "session",
    }


def _row(row: SessionRow, runs: Sequence[Run], defaults: Mapping[str, object]) -> dict[str, object]:
    state, active = _doing(runs)
    more = dict(row.fields)
    provider, model = (more.pop(name, None) for name in _PRIVATE)
    if model:
        more |= {"model": model, "modelProvider": provider or more.get("modelProvider")}
    chosen = {name: value for name, value in defaults.items() if value is not None}
    out: dict[str, object] = {
        "key": row.key,
        "kind": "direct",
        "agentId": agent_of(row.key),
        "isMain": row.key.endswith(":main") and row.key.count(":") == 2,
        "sessionId": row.session_id,
        "updatedAt": row.updated_at,
        "abortedLastRun": False,
        "archived": False,
        "pinned": False,
        "isBackground": ":cron:" in row.key or ":subagent:" in row.key,
        "totalTokensFresh": False,
        **chosen,
        **more,
        "state": state,
        "activeRunId": active,
        "hasActiveRun": bool(runs),
        "activeRunIds": [run.id for run in runs],
    }
    out["classification"] = out["kind"]
    if model and not provider:
        out["modelProvider"] = more.get("modelProvider") or chosen.get("modelProvider")
    if runs:
        out["status"] = "queued" if state == "queued" else "running"
    elif more.get("abortedLastRun"):
        out["status"] = "killed"
    elif more.get("totalTokens"):
        out["status"] = "done"
    return out


def _doing(runs: Sequence[Run]) -> tuple[str, str | None]:
    """idle | queued | running | waiting, and the run that is at it."""
    for run in runs:
        if run.state is RunState.PARKED:
            return "waiting", run.id
    for run in runs:
        if run.state is not RunState.QUEUED:
            return "running", run.id
    return ("queued", runs[0].id) if runs else ("idle", None)
