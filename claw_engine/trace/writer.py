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
from claw_engine.trace.bodies import Bodies, plain
from claw_engine.trace.noted import Begun, Ended, Item
from claw_engine.trace.schema import StoreDamaged, packed

if TYPE_CHECKING:
    import sqlite3

TITLE_CHARS = 200
OUTPUT_CHARS = 64 * 1024
"""Characters of live output kept a tool call; its result stands in the next request anyway."""
LEFT_OUT = "\n[the trace leaves out the rest of this output]"
RUNS_MOST = 1_000


Row: TypeAlias = tuple[object, ...]
CallKey: TypeAlias = tuple[int, str, int]
"""Run, label and life."""


class _Run(Struct):
    """A row of `runs`, and what is counted while the run goes on."""

    n: int
    id: str
    session_key: str
    started_ms: int
    agent_id: str = ""
    parent_id: str | None = None
    answered_by: str | None = None
    source: str = ""
    cause: str = ""
    title: str = ""
    model: str = ""
    status: str = "running"
    stop_reason: str = ""
    ended_ms: int | None = None
    queue_ms: int = 0
    parked_ms: int = 0
    parked_since: int | None = None
    tools: int = 0
    life: int = 1
    error: str | None = None
    calls: int = 0
    told: bool = False
    """Whether there are steps of it already."""
    output: dict[str, int] = msgspec.field(default_factory=dict)


_RUN_COLUMNS = _Run.__struct_fields__[: _Run.__struct_fields__.index("calls")]
_READ_RUN = f"SELECT {', '.join(_RUN_COLUMNS)} FROM runs WHERE id = ?"
_MARKS = ", ".join("?" * len(_RUN_COLUMNS))
_CHANGES = ", ".join(f"{name} = excluded.{name}" for name in _RUN_COLUMNS)
_WRITE_RUN = (
    f"INSERT INTO runs ({', '.join(_RUN_COLUMNS)}) VALUES ({_MARKS})"
    f" ON CONFLICT (n) DO UPDATE SET {_CHANGES}"
)
_BEGIN_COLUMNS = (
    "run", "label", "life", "session_key", "agent_id", "seq", "cause", "parent_id", "model",
    "provider", "api", "attempt", "started_ms", "queue_ms", "parked_ms", "body_bytes",
    "body_hash", "estimated_tokens", "ratio", "list", "prefix", "suffix", "middle",
)  # fmt: skip
_END_COLUMNS = (
    "status", "finish", "error", "ended_ms", "first_token_ms", "input", "output", "cache_read",
    "cache_write", "cost", "answer",
)  # fmt: skip
_WRITE_CALL = (
    f"INSERT INTO calls ({', '.join((*_BEGIN_COLUMNS, *_END_COLUMNS))})"
    f" VALUES ({', '.join('?' * (len(_BEGIN_COLUMNS) + len(_END_COLUMNS)))})"
)
_END_CALL = (
    "UPDATE calls SET status = ?, finish = ?, error = ?, ended_ms = ?, first_token_ms = ?,"
    " input = ?, output = ?, cache_read = ?, cache_write = ?, cost = ?, answer = ?"
    " WHERE run = ? AND label = ? AND life = ?"
)
_OPEN: Row = ("running", None, None, None, None, None, None, None, None, None, None)
# What a call left open when its run was cut off at the wrong moment.
_CUT_CALLS = (
    "UPDATE calls SET status = 'aborted', ended_ms = ? WHERE run = ? AND status = 'running'"
)


class _Batch(Struct):
    """Rows that one transaction writes."""

    runs: dict[int, _Run] = msgspec.field(default_factory=dict)
    calls: dict[CallKey, Row] = msgspec.field(default_factory=dict)
    ends: dict[CallKey, Row] = msgspec.field(default_factory=dict)
    cut: list[Row] = msgspec.field(default_factory=list)
    steps: dict[int, list[_Step]] = msgspec.field(default_factory=dict)

    def store(self, db: sqlite3.Connection) -> None:
        db.executemany(
            _WRITE_RUN,
            [tuple(getattr(run, name) for name in _RUN_COLUMNS) for run in self.runs.values()],
        )
        db.executemany(
            _WRITE_CALL,
            [(*row, *self.ends.pop(key, _OPEN)) for key, row in self.calls.items()],
        )
        db.executemany(_END_CALL, [(*row, *key) for key, row in self.ends.items()])
        db.executemany(_CUT_CALLS, self.cut)
        rows = [
            (run, packed(dumped([step.values() for step in steps])))
            for run, steps in self.steps.items()
        ]
        db.executemany("INSERT INTO events (run, data) VALUES (?, ?)", rows)


class Writer:
    """One for each opened file."""

    def __init__(self) -> None:
        self._bodies = Bodies()
        self._runs: dict[str, _Run] = {}
        self._open: dict[CallKey, int] = {}
        """Calls that have not ended, and when they began."""
        self._last = 0

    def forget(self) -> None:
        """Rows may have gone: look everything up again."""
        self._bodies.forget()
        self._runs.clear()

    def write(self, db: sqlite3.Connection, items: Iterable[Item]) -> None:
        """Store a batch. Raises the module's `Error`; then nothing of it is stored."""
        batch = _Batch()
        db.execute("BEGIN IMMEDIATE")
        try:
            for item in items:
                match item:
                    case TraceEvent():
                        if not self._goes_on(batch, item):
                            self._event(db, batch, item)
                    case Begun():
                        self._begun(db, batch, item)
                    case Ended():
                        self._ended(batch, item)
            batch.store(db)
            db.execute("COMMIT")
        except BaseException:
            self.forget()
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        if len(self._runs) > RUNS_MOST:
            self._runs.clear()

    # ── runs ────────────────────────────────────────────────────────────────────────────────

    def _run(
        self, db: sqlite3.Connection, batch: _Batch, run_id: str, session: str, ts: int
    ) -> _Run:
        """The run, to be changed: it is written with this batch."""
        run = self._runs.get(run_id)
        if run is None:
            row = db.execute(_READ_RUN, (run_id,)).fetchone()
            if row is None:
                if not self._runs:
                    self._last = db.execute("SELECT coalesce(max(n), 0) FROM runs").fetchone()[0]
                self._last = max((self._last, *batch.runs)) + 1
                run = _Run(self._last, run_id, plain(session), ts)
            else:
                run = _Run(*row)
                (run.calls,) = db.execute(
                    "SELECT count(*) FROM calls WHERE run = ? AND life = ?", (run.n, run.life)
                ).fetchone()
                found = db.execute("SELECT 1 FROM events WHERE run = ? LIMIT 1", (run.n,))
                run.told = found.fetchone() is not None
            self._runs[run_id] = run
        batch.runs[run.n] = run
        return run

    def _goes_on(self, batch: _Batch, event: TraceEvent) -> bool:
        """Whether it only adds words to the step before it: nine steps of ten."""
        if event.kind is not TraceKind.TEXT and event.kind is not TraceKind.REASONING:
            return False
        run = self._runs.get(event.run_id)
        steps = batch.steps.get(run.n) if run is not None else None
        if not steps:
            return False
        step = steps[-1]
        if (
            step.deltas is None
            or step.last.kind is not event.kind
            or step.last.data.get("callId") != event.data.get("callId")
        ):
            return False
        step.last = event
        step.deltas.append(str(event.data.get("delta", "")))
        return True

    def _event(self, db: sqlite3.Connection, batch: _Batch, event: TraceEvent) -> None:
        """Note what a step says about its run, and the step itself."""
        data = event.data
        run = self._run(db, batch, event.run_id, event.session_key, event.ts)
        match event.kind:
            case TraceKind.RUN_QUEUED:
                _queued(run, event)
            case TraceKind.RUN_STARTED:
                run.model, run.cause = plain(str(data.get("model") or "")), str(data.get("cause"))
                run.queue_ms = _whole(data.get("waitMs"))
                run.answered_by = _text(data.get("answeredBy"))
            case TraceKind.RUN_STATE:
                _parked(run, event)
            case TraceKind.TOOL_STARTED:
                run.tools += 1
            case TraceKind.TOOL_OUTPUT:
                within = _within(run, event)
                if within is None:
                    return
                event = within
            case TraceKind.RUN_ENDED:
                self._run_ended(batch, run, event)
            case _:
                pass
        run.told = True
        _join(batch.steps.setdefault(run.n, []), event)

    def _run_ended(self, batch: _Batch, run: _Run, event: TraceEvent) -> None:
        error = event.data.get("error")
        run.status = str(event.data.get("status"))
        run.stop_reason = str(event.data.get("stopReason") or "")
        run.ended_ms = event.ts
        run.error = _text(error.get("title")) if isinstance(error, Mapping) else None
        run.answered_by = _text(event.data.get("answeredBy")) or run.answered_by
        if not run.cause and run.status == "done":
            run.cause = "command"  # a slash command is answered without a start
        left = [key for key in self._open if key[0] == run.n]
        if left:
            batch.cut.append((event.ts, run.n))
        for key in left:
            del self._open[key]

    # ── calls ───────────────────────────────────────────────────────────────────────────────

    def _begun(self, db: sqlite3.Connection, batch: _Batch, begun: Begun) -> None:
        call = begun.call
        run = self._run(db, batch, call.run_id, call.session_key, call.ts)
        run.calls += 1
        if run.calls == 1:
            run.agent_id = call.agent_id
            run.parent_id = None if call.parent_id and "/" in call.parent_id else call.parent_id
        key = (run.n, call.call_id, run.life)
        self._open[key] = call.ts
        batch.calls[key] = (
            *key, plain(call.session_key), call.agent_id, run.calls, call.cause.value,
            call.parent_id, plain(call.model), plain(call.provider), call.api, call.attempt,
            call.ts, run.queue_ms, run.parked_ms, len(begun.body), sha256(begun.body).digest(),
            call.estimated_tokens, call.ratio,
            *self._bodies.add(db, call.session_key, begun.change),
        )  # fmt: skip

    def _ended(self, batch: _Batch, ended: Ended) -> None:
        end, run = ended.end, self._runs.get(ended.run_id)
        if run is None:
            return
        key = (run.n, ended.call_id, run.life)
        began = self._open.pop(key, None)
        if began is None:
            return  # recording began after the call did
        usage = end.usage
        counted = (
            (None, None, None, None)
            if usage is None
            else (usage.input, usage.output, usage.cache_read, usage.cache_write)
        )
        answer = {"text": end.text, "reasoning": end.reasoning, "toolCalls": list(end.tool_calls)}
        batch.ends[key] = (
            end.status, end.finish, _text(end.error), end.ts,
            None if end.ttft_ms is None else began + end.ttft_ms, *counted, end.cost,
            packed(dumped(answer)),
        )  # fmt: skip


def _queued(run: _Run, event: TraceEvent) -> None:
    data = event.data
    if data.get("steeredInto"):
        return  # told once more, later; it is the same message
    if not run.told:
        run.title = plain(str(data.get("message") or "")[:TITLE_CHARS])
        run.source = str(data.get("source") or "")
        return
    if run.ended_ms is None and run.status == "running":
        return  # told again of one that still waits
    # The same run once more, after a restart: its calls are counted anew from here on.
    run.life, run.calls, run.status = run.life + 1, 0, "running"
    run.stop_reason, run.ended_ms, run.error = "", None, None


def _parked(run: _Run, event: TraceEvent) -> None:
    if event.data.get("new") == "parked":
        run.parked_since = event.ts
    elif run.parked_since is not None:
        run.parked_ms += max(0, event.ts - run.parked_since)
        run.parked_since = None


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


def _text(value: object) -> str | None:
    return None if value is None else plain(str(value))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def dumped(value: object) -> bytes:
    """JSON; also of texts that UTF-8 cannot hold and of values it does not know."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        return json.dumps(value, default=str).encode()


def loaded(data: bytes) -> object:
    """What was dumped. Raises StoreDamaged."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        pass
    try:
        return json.loads(data)
    except ValueError as error:
        raise StoreDamaged(f"steps cannot be read: {error}") from error
