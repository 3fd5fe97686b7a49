"""Reads runs, calls and events back. Blocking: on the database's thread, or in `claw`.

Texts come as they were told; who shows them to anybody redacts them first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from claw_engine.errors import InvalidRequest
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.trace.records import Answer, CallRecord, CallUsage, RunRow, ToolRow
from claw_engine.trace.schema import unpacked
from claw_engine.trace.writer import loaded

if TYPE_CHECKING:
    import sqlite3


class UnknownTrace(InvalidRequest):
    """Nothing of that name was recorded, or it was thrown away since."""


class Found(Struct, frozen=True):
    """A call, its number in the file, and the session it belongs to."""

    n: int
    record: CallRecord


_KINDS = frozenset(kind.value for kind in TraceKind)
Row = tuple[Any, ...]
"""As SQLite gives it; the tables say what is in it."""

_CALL = (
    "SELECT c.n, r.id, c.label, c.life, c.session_key, c.agent_id, c.seq, c.cause, c.parent_id,"
    " c.model, c.provider, c.api, c.attempt, c.started_ms, c.first_token_ms, c.ended_ms,"
    " c.queue_ms, c.parked_ms, c.status, c.error, c.finish, c.body_bytes, c.body_hash,"
    " CAST(round(c.estimated_tokens * c.ratio) AS INTEGER), c.ratio, c.input, c.output,"
    " c.cache_read, c.cache_write, c.cost"
    " FROM calls c JOIN runs r ON r.n = c.run"
)
_RUN = (
    "SELECT r.n, r.id, r.session_key, r.agent_id, r.parent_id, r.answered_by, r.source, r.cause,"
    " r.title, r.model, r.status, r.stop_reason, r.started_ms, r.ended_ms, r.queue_ms,"
    " r.parked_ms, r.tools, r.error, count(c.n), coalesce(sum(c.body_bytes), 0),"
    " CAST(coalesce(sum(round(c.estimated_tokens * c.ratio)), 0) AS INTEGER), sum(c.input),"
    " sum(c.output), sum(c.cache_read),"
    " sum(c.cache_write), sum(c.cost)"
    " FROM runs r LEFT JOIN calls c ON c.run = r.n"
)


# ── runs ────────────────────────────────────────────────────────────────────────────────────


def runs(
    db: sqlite3.Connection, session_key: str | None, limit: int, before: int | None
) -> tuple[list[RunRow], int | None]:
    """The newest runs, and the `before` of the page that follows, None at the end."""
    terms, values = [], []
    if session_key is not None:
        terms.append("r.session_key = ?")
        values.append(session_key)
    if before is not None:
        terms.append("r.n < ?")
        values.append(str(before))
    where = f" WHERE {' AND '.join(terms)}" if terms else ""
    rows = db.execute(
        f"{_RUN}{where} GROUP BY r.n ORDER BY r.n DESC LIMIT ?", (*values, limit + 1)
    ).fetchall()
    shown = rows[:limit]
    return [_run(row) for row in shown], shown[-1][0] if len(rows) > limit else None


def run(db: sqlite3.Connection, run_id: str) -> tuple[int, RunRow]:
    """One run with its number. Raises UnknownTrace."""
    row = db.execute(f"{_RUN} WHERE r.id = ? GROUP BY r.n", (run_id,)).fetchone()
    if row is None:
        raise UnknownTrace(f"No run {run_id} is in the trace.", hint="trace.list names them.")
    return row[0], _run(row)


def _run(row: Row) -> RunRow:
    (_, id_, session, agent, parent, answered, source, cause, title, model, status, stop, started,
     ended, queue, parked, tools, error, calls, size, estimated, given, output, read, written,
     cost) = row  # fmt: skip
    return RunRow(
        id_, session, agent, parent, answered, source, cause, title, model, status, stop, started,
        ended, queue, parked, calls, tools, size, estimated, _usage(given, output, read, written),
        cost, error,
    )  # fmt: skip


def _usage(
    given: int | None, output: int | None, read: int | None, written: int | None
) -> CallUsage | None:
    return None if given is None else CallUsage(given, output or 0, read or 0, written or 0)


# ── calls ───────────────────────────────────────────────────────────────────────────────────


def calls(
    db: sqlite3.Connection,
    *,
    session_key: str | None = None,
    run_id: str | None = None,
    limit: int = 100,
    before: int | None = None,
) -> tuple[list[CallRecord], int | None]:
    """The newest calls of a session, a run or all; and the `before` of the page that follows."""
    terms, values = ["c.n < ?"], [str(before if before is not None else 1 << 62)]
    for term, value in (("c.session_key = ?", session_key), ("r.id = ?", run_id)):
        if value is not None:
            terms.append(term)
            values.append(value)
    rows = db.execute(
        f"{_CALL} WHERE {' AND '.join(terms)} ORDER BY c.n DESC LIMIT ?", (*values, limit + 1)
    ).fetchall()
    shown = [_call(row) for row in rows[:limit]]
    return [found.record for found in shown], shown[-1].n if len(rows) > limit else None


def call(db: sqlite3.Connection, call_id: str) -> Found:
    """A call by its id; without `@life` the one of the run's last life. Raises UnknownTrace."""
    run_id, _, label = call_id.rpartition("/")
    label, _, life = label.partition("@")
    row = db.execute(
        f"{_CALL} WHERE r.id = ? AND c.label = ? AND (? = '' OR c.life = ?)"
        " ORDER BY c.n DESC LIMIT 1",
        (run_id, label, life, life),
    ).fetchone()
    if row is None:
        raise UnknownTrace(f"No call {call_id} is in the trace.", hint="trace.calls names them.")
    return _call(row)


def last_call(db: sqlite3.Connection, session_key: str | None = None) -> Found:
    """The newest call of a session, or of all. Raises UnknownTrace."""
    where = "" if session_key is None else " WHERE c.session_key = ?"
    values = () if session_key is None else (session_key,)
    row = db.execute(f"{_CALL}{where} ORDER BY c.n DESC LIMIT 1", values).fetchone()
    if row is None:
        whose = f"session {session_key}" if session_key is not None else "any session"
        raise UnknownTrace(f"No call of {whose} is in the trace.")
    return _call(row)


def call_before(db: sqlite3.Connection, found: Found) -> Found | None:
    """The call before it in its session."""
    row = db.execute(
        f"{_CALL} WHERE c.session_key = ? AND c.n < ? ORDER BY c.n DESC LIMIT 1",
        (found.record.session_key, found.n),
    ).fetchone()
    return None if row is None else _call(row)


def answer(db: sqlite3.Connection, found: Found) -> Answer:
    """What the model said; empty while it has not ended."""
    row = db.execute("SELECT answer FROM calls WHERE n = ?", (found.n,)).fetchone()
    if row is None or row[0] is None:
        return Answer()
    value = loaded(unpacked(row[0]))
    assert isinstance(value, dict)
    return Answer(value["text"], value["reasoning"], tuple(value["toolCalls"]))


def _call(row: Row) -> Found:
    (n, run_id, label, life, session, agent, seq, cause, parent, model, provider, api, attempt,
     started, first, ended, queue, parked, status, error, finish, size, digest, estimated, ratio,
     given, output, read, written, cost) = row  # fmt: skip
    usage = _usage(given, output, read, written)
    counted = 0 if usage is None else usage.input + usage.cache_read + usage.cache_write
    id_ = f"{run_id}/{label}" if life == 1 else f"{run_id}/{label}@{life}"
    return Found(n, CallRecord(
        id_, run_id, session, agent, seq, cause, parent, model, provider, api, attempt, started,
        first, ended, queue, parked, status, error, finish, size, digest.hex(), estimated,
        counted or estimated, "measured" if counted else "estimated", usage, cost, ratio,
    ))  # fmt: skip


# ── steps ───────────────────────────────────────────────────────────────────────────────────


def events(db: sqlite3.Connection, n: int, row: RunRow) -> list[TraceEvent]:
    """The steps of run number `n` as they were told, numbered anew: a run that was resumed began
    its numbers again."""
    out: list[TraceEvent] = []
    for (data,) in db.execute("SELECT data FROM events WHERE run = ? ORDER BY n", (n,)):
        stored = loaded(unpacked(data))
        assert isinstance(stored, list)
        for seq, ts, kind, said in stored:
            if kind not in _KINDS:
                continue  # of a later version of this program
            last = out[-1] if out else None
            event = TraceEvent(row.id, row.session_key, seq, ts, TraceKind(kind), said)
            key = event.merge_key()
            # Deltas of one answer that came in two batches.
            if last is not None and key is not None and last.merge_key() == key:
                merged = last.merge(event)
                assert isinstance(merged, TraceEvent)
                out[-1] = merged
            else:
                out.append(event)
    return [
        TraceEvent(event.run_id, event.session_key, seq, event.ts, event.kind, event.data)
        for seq, event in enumerate(out, start=1)
    ]


class _Told(Struct):
    """What the steps say of one tool call."""

    began: TraceEvent
    waiting: TraceEvent | None = None
    decided: TraceEvent | None = None
    ended: TraceEvent | None = None
    cut: bool = False
    """Its run began again after it: the engine that ran it is gone."""


def tools(steps: list[TraceEvent], row: RunRow) -> list[ToolRow]:
    """The tool calls of a run's steps, in the order they began."""
    told: dict[str, _Told] = {}
    for step in steps:
        known = told.get(str(step.data.get("toolCallId")))
        match step.kind:
            case TraceKind.RUN_STARTED:
                for one in told.values():
                    one.cut = True
            case TraceKind.TOOL_STARTED:
                told[str(step.data.get("toolCallId"))] = _Told(step)
            case TraceKind.TOOL_WAITING if known is not None:
                known.waiting = step
            case TraceKind.TOOL_DECIDED if known is not None:
                known.decided = step
            case TraceKind.TOOL_ENDED if known is not None:
                known.ended = step
            case _:
                pass
    last_ms = steps[-1].ts if steps else 0
    return [_tool(id_, one, row, last_ms) for id_, one in told.items()]


def _tool(id_: str, told: _Told, row: RunRow, last_ms: int) -> ToolRow:
    began, end = told.began, told.ended
    call_id = f"{began.run_id}/{began.data.get('callId')}"
    name = str(began.data.get("name"))
    if end is None:
        status = "interrupted" if told.cut or row.status != "running" else "running"
        waited, decision = 0, None
        if told.decided is not None:
            decision = told.decided.data.get("decision")
        if told.waiting is not None:  # undecided: as long as the steps go
            until = told.decided.ts if told.decided is not None else last_ms
            waited = max(0, until - told.waiting.ts)
        return ToolRow(
            id_, began.run_id, call_id, name, status, began.ts, None, None, waited, None,
            None if decision is None else str(decision),
        )  # fmt: skip
    said: Any = end.data
    return ToolRow(
        id_, began.run_id, call_id, name, said.get("status", ""), began.ts, end.ts,
        said.get("durationMs"), said.get("waitedMs") or 0, said.get("exitCode"),
        said.get("decision"),
    )  # fmt: skip
