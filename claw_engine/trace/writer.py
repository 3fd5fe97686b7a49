"""Turns what was told into rows; runs on the database's thread, in order, a batch a transaction.

A run's row is made by the first word about it, so recording may begin in the middle of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claw_engine.protocol.trace import DELTA_OWNER, TraceEvent, TraceKind
from claw_engine.trace.bodies import Bodies, Change, plain
from claw_engine.trace.ports import Call, CallEnd
from claw_engine.trace.schema import packed

if TYPE_CHECKING:
    import sqlite3

TITLE_CHARS = 200
OUTPUT_CHARS = 64 * 1024
"""Characters of live output kept a tool call; its result stands in the next request anyway."""
LEFT_OUT = "\n[the trace leaves out the rest of this output]"
RUNS_MOST = 1_000


class Begun(Struct, frozen=True):
    """A call that was handed to the wire."""

    call: Call
    body: bytes
    change: Change


class Ended(Struct, frozen=True):
    run_id: str
    call_id: str
    end: CallEnd


Item: TypeAlias = TraceEvent | Begun | Ended


class _Run(Struct):
    """What is known of a run that goes on."""

    n: int
    life: int
    calls: int = 0
    queue_ms: int = 0
    parked_ms: int = 0
    parked_since: int | None = None
    output: dict[str, int] = msgspec.field(default_factory=dict)


class Writer:
    """One for each opened file."""

    def __init__(self) -> None:
        self._bodies = Bodies()
        self._runs: dict[str, _Run] = {}

    def forget(self) -> None:
        """Rows may have gone: look everything up again."""
        self._bodies.forget()
        self._runs.clear()

    def write(self, db: sqlite3.Connection, items: Iterable[Item]) -> None:
        """Store a batch. Raises the module's `Error`; then nothing of it is stored."""
        steps: dict[str, list[_Step]] = {}
        db.execute("BEGIN IMMEDIATE")
        try:
            for item in items:
                match item:
                    case TraceEvent():
                        if (kept := self._event(db, item)) is not None:
                            _join(steps.setdefault(item.run_id, []), kept)
                    case Begun():
                        self._begun(db, item)
                    case Ended():
                        self._ended(db, item)
            for run_id, events in steps.items():
                row = (self._runs[run_id].n, packed(dumped([step.values() for step in events])))
                db.execute("INSERT INTO events (run, data) VALUES (?, ?)", row)
            db.execute("COMMIT")
        except BaseException:
            self.forget()
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        if len(self._runs) > RUNS_MOST:
            self._runs.clear()

    # ── runs ────────────────────────────────────────────────────────────────────────────────

    def _run(self, db: sqlite3.Connection, run_id: str, session: str, ts: int) -> _Run:
        known = self._runs.get(run_id)
        if known is not None:
            return known
        db.execute(
            "INSERT OR IGNORE INTO runs (id, session_key, started_ms) VALUES (?, ?, ?)",
            (run_id, plain(session), ts),
        )
        n, life, queue, parked, since = db.execute(
            "SELECT n, life, queue_ms, parked_ms, parked_since FROM runs WHERE id = ?", (run_id,)
        ).fetchone()
        calls = db.execute(
            "SELECT count(*) FROM calls WHERE run = ? AND life = ?", (n, life)
        ).fetchone()[0]
        made = self._runs[run_id] = _Run(n, life, calls, queue, parked, since)
        return made

    def _event(self, db: sqlite3.Connection, event: TraceEvent) -> TraceEvent | None:
        """Note what a step says about its run; the step as it is kept."""
        data = event.data
        run = self._run(db, event.run_id, event.session_key, event.ts)
        match event.kind:
            case TraceKind.RUN_QUEUED:
                self._queued(db, run, event)
            case TraceKind.RUN_STARTED:
                run.queue_ms = _whole(data.get("waitMs"))
                db.execute(
                    "UPDATE runs SET model = ?, cause = ?, queue_ms = ?, answered_by = ?"
                    " WHERE n = ?",
                    (plain(str(data.get("model") or "")), str(data.get("cause") or ""),
                     run.queue_ms, data.get("answeredBy"), run.n),
                )  # fmt: skip
            case TraceKind.RUN_STATE:
                self._parked(db, run, event)
            case TraceKind.TOOL_STARTED:
                db.execute("UPDATE runs SET tools = tools + 1 WHERE n = ?", (run.n,))
            case TraceKind.TOOL_OUTPUT:
                return _within(run, event)
            case TraceKind.RUN_ENDED:
                error = data.get("error")
                title = error.get("title") if isinstance(error, Mapping) else None
                db.execute(
                    "UPDATE runs SET status = ?, stop_reason = ?, ended_ms = ?, error = ?,"
                    " answered_by = coalesce(?, answered_by) WHERE n = ?",
                    (str(data.get("status")), str(data.get("stopReason") or ""), event.ts,
                     None if title is None else plain(str(title)), data.get("answeredBy"), run.n),
                )  # fmt: skip
                # What a call left open when its run was cut off at the wrong moment.
                db.execute(
                    "UPDATE calls SET status = 'aborted', ended_ms = ? WHERE run = ?"
                    " AND status = 'running'",
                    (event.ts, run.n),
                )
            case _:
                pass
        return event

    def _queued(self, db: sqlite3.Connection, run: _Run, event: TraceEvent) -> None:
        if event.data.get("steeredInto"):
            return  # told once more, later; it is the same message
        title = plain(str(event.data.get("message") or "")[:TITLE_CHARS])
        seen = db.execute("SELECT 1 FROM events WHERE run = ? LIMIT 1", (run.n,)).fetchone()
        if seen is None:
            db.execute(
                "UPDATE runs SET title = ?, source = ? WHERE n = ?",
                (title, str(event.data.get("source") or ""), run.n),
            )
            return
        # The same run once more, after a restart: its calls are counted anew from here on.
        run.life, run.calls = run.life + 1, 0
        db.execute(
            "UPDATE runs SET life = ?, status = 'running', stop_reason = '', ended_ms = NULL,"
            " error = NULL WHERE n = ?",
            (run.life, run.n),
        )

    def _parked(self, db: sqlite3.Connection, run: _Run, event: TraceEvent) -> None:
        if event.data.get("new") == "parked":
            run.parked_since = event.ts
        elif run.parked_since is not None:
            run.parked_ms += max(0, event.ts - run.parked_since)
            run.parked_since = None
        else:
            return
        db.execute(
            "UPDATE runs SET parked_ms = ?, parked_since = ? WHERE n = ?",
            (run.parked_ms, run.parked_since, run.n),
        )

    # ── calls ───────────────────────────────────────────────────────────────────────────────

    def _begun(self, db: sqlite3.Connection, begun: Begun) -> None:
        call = begun.call
        run = self._run(db, call.run_id, call.session_key, call.ts)
        run.calls += 1
        place = self._bodies.add(db, call.session_key, begun.change)
        db.execute(
            "INSERT INTO calls (run, label, life, session_key, agent_id, seq, cause, parent_id,"
            " model, provider, api, attempt, started_ms, queue_ms, parked_ms, body_bytes,"
            " body_hash, estimated_tokens, list, prefix, suffix, middle)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (run.n, call.call_id, run.life, plain(call.session_key), call.agent_id, run.calls,
             call.cause.value, call.parent_id, plain(call.model), plain(call.provider), call.api,
             call.attempt, call.ts, run.queue_ms, run.parked_ms, len(begun.body),
             sha256(begun.body).digest(), call.estimated_tokens, *place),
        )  # fmt: skip
        if run.calls == 1:
            parent = None if call.parent_id and "/" in call.parent_id else call.parent_id
            db.execute(
                "UPDATE runs SET agent_id = ?, parent_id = ? WHERE n = ?",
                (call.agent_id, parent, run.n),
            )

    def _ended(self, db: sqlite3.Connection, ended: Ended) -> None:
        run, end = self._runs.get(ended.run_id), ended.end
        if run is None:
            found = db.execute("SELECT n, life FROM runs WHERE id = ?", (ended.run_id,)).fetchone()
            if found is None:
                return  # recording began after the call did
            run = _Run(*found)
        usage = end.usage
        answer = {"text": end.text, "reasoning": end.reasoning, "toolCalls": list(end.tool_calls)}
        counted = (
            (None, None, None, None)
            if usage is None
            else (usage.input, usage.output, usage.cache_read, usage.cache_write)
        )
        db.execute(
            "UPDATE calls SET status = ?, finish = ?, error = ?, ended_ms = ?,"
            " first_token_ms = started_ms + ?, input = ?, output = ?, cache_read = ?,"
            " cache_write = ?, cost = ?, answer = ? WHERE run = ? AND label = ? AND life = ?",
            (end.status, end.finish, None if end.error is None else plain(end.error), end.ts,
             end.ttft_ms, *counted, end.cost, packed(dumped(answer)), run.n, ended.call_id,
             run.life),
        )  # fmt: skip


# ── events ──────────────────────────────────────────────────────────────────────────────────


class _Step(Struct):
    """One step, or the deltas of one owner that follow each other; `last` is the newest."""

    last: TraceEvent
    deltas: list[str] | None = None

    def values(self) -> tuple[int, int, str, Mapping[str, object]]:
        """As it is kept: seq, ts, kind, data."""
        event, data = self.last, self.last.data
        if self.deltas is not None:
            data = {**data, "delta": "".join(self.deltas)}
        elif event.kind is TraceKind.CALL_STARTED:
            data = {name: value for name, value in data.items() if name != "parts"}  # kept as rows
        return event.seq, event.ts, event.kind.value, data


def _join(steps: list[_Step], event: TraceEvent) -> None:
    """Add a step; a delta joins the one before it if it goes on with that."""
    key = event.merge_key()
    if key is None:
        steps.append(_Step(event))
        return
    delta = str(event.data.get("delta", ""))
    last = steps[-1] if steps else None
    if last is not None and last.deltas is not None and last.last.merge_key() == key:
        last.last = event
        last.deltas.append(delta)
    else:
        steps.append(_Step(event, [delta]))


def _within(run: _Run, event: TraceEvent) -> TraceEvent | None:
    """The output, cut where a call has had its share."""
    owner = str(event.data.get(DELTA_OWNER[event.kind]))
    delta = str(event.data.get("delta", ""))
    before = run.output.get(owner, 0)
    run.output[owner] = before + len(delta)
    if before + len(delta) <= OUTPUT_CHARS:
        return event
    if before > OUTPUT_CHARS:
        return None
    delta = delta[: OUTPUT_CHARS - before] + LEFT_OUT
    return replace(event, data={**event.data, "delta": delta})


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def dumped(value: object) -> bytes:
    """JSON; also of texts that UTF-8 cannot hold and of values it does not know."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        return json.dumps(value, default=str).encode()


def loaded(data: bytes) -> object:
    """What was dumped. Raises ValueError."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)
