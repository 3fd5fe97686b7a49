"""Answers questions about the trace: what is stored, redacted, as JSON values (docs/trace.md).

Long texts are worked on in the worker process; nothing of any size runs on the loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from claw_engine.config.redact import Redactor
from claw_engine.errors import InvalidRequest
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.trace import contents, reader, shown
from claw_engine.trace.compare import Pair, Side, pairs
from claw_engine.trace.contents import ENVELOPE, StoredPart
from claw_engine.trace.reader import Found
from claw_engine.trace.recorder import Recorder, TraceOff
from claw_engine.trace.records import PartRow, wire
from claw_engine.trace.views import view
from claw_engine.worker import Worker

if TYPE_CHECKING:
    import sqlite3

Json: TypeAlias = dict[str, object]

FAR_CHARS = 48 * 1024
"""Characters from which texts go to the worker process: hiding secrets in more of them would hold
the interpreter for too long."""
TEXTS_KEPT = 4


class TraceDesk:
    """Loop thread only. All methods raise UnknownTrace, TraceOff, StateDiskError, WorkerFailed."""

    def __init__(
        self, recorder: Recorder, worker: Worker, redactor: Callable[[], Redactor]
    ) -> None:
        self._recorder = recorder
        self._worker = worker
        self._redactor = redactor
        self._texts: OrderedDict[tuple[bytes, bool], tuple[Redactor, str, bool]] = OrderedDict()

    async def runs(self, session_key: str | None, limit: int, before: int | None) -> Json:
        """`trace.list`."""
        redactor = self._redactor()

        def look(db: sqlite3.Connection) -> Json:
            rows, following = reader.runs(db, session_key, limit, before)
            return {"runs": [shown.values(wire(row), redactor) for row in rows], "next": following}

        try:
            found = await self._recorder.read(look)
        except TraceOff:
            found = {"runs": [], "next": None}
        return {"enabled": self._recorder.recording, "why": self._recorder.idle, **found}

    async def run(self, run_id: str) -> Json:
        """`trace.run`."""
        redactor = self._redactor()

        def look(db: sqlite3.Connection) -> Json:
            n, row = reader.run(db, run_id)
            steps = reader.events(db, n, row)
            calls, _ = reader.calls(db, run_id=run_id, limit=10_000)
            return {
                "run": shown.values(wire(row), redactor),
                "calls": [shown.values(wire(call), redactor) for call in reversed(calls)],
                "tools": [wire(tool) for tool in reader.tools(steps, row)],
                "events": [
                    shown.values(step.to_json(), redactor) for step in _with_parts(db, steps)
                ],
            }

        return await self._recorder.read(look)

    async def calls(
        self, session_key: str | None, run_id: str | None, limit: int, before: int | None
    ) -> Json:
        """`trace.calls`."""
        redactor = self._redactor()

        def look(db: sqlite3.Connection) -> Json:
            rows, following = reader.calls(
                db, session_key=session_key, run_id=run_id, limit=limit, before=before
            )
            return {"calls": [shown.values(wire(row), redactor) for row in rows], "next": following}

        return await self._recorder.read(look)

    async def call(self, call_id: str | None, session_key: str | None) -> Json:
        """`trace.call`."""
        redactor = self._redactor()

        def look(db: sqlite3.Connection) -> Json:
            found = _found(db, call_id, session_key)
            said = wire(reader.answer(db, found))
            if len(str(said)) <= FAR_CHARS:
                said = _json(shown.values(said, redactor))
            before = reader.call_before(db, found)
            now = contents.contents(db, found)
            same_model = before is not None and before.record.model == found.record.model
            ratio = found.record.ratio
            was = contents.contents(db, before, ratio) if before else None
            seen = view(now, was, same_model=same_model)
            return {
                "call": shown.values(wire(found.record), redactor),
                "previous": shown.values(wire(before.record), redactor) if before else None,
                "answer": said,
                "bytes": found.record.body_bytes,
                "tokens": found.record.tokens,
                "envelopeBytes": now.envelope,
                "cacheBreak": seen.cache_break,
                "parts": [wire(part) for part in seen.parts],
                "growth": [wire(row) for row in seen.growth],
            }

        payload = await self._recorder.read(look)
        said = payload["answer"]
        if len(str(said)) > FAR_CHARS:
            payload["answer"] = await self._worker.call(shown.values, said, redactor)
        return payload

    async def part(self, call_id: str, part_id: str, offset: int, limit: int) -> Json:
        """`trace.part`."""
        if part_id == ENVELOPE:
            raise InvalidRequest("The envelope is no text: it is all that stands between parts.")
        redactor = self._redactor()

        def look(db: sqlite3.Connection) -> tuple[StoredPart, str]:
            found = reader.call(db, call_id)
            _, part = contents.part(contents.contents(db, found), part_id)
            return next(contents.texts(db, [part]))

        part, raw = await self._recorder.read(look)
        text, redacted = await self._shown(part, raw, redactor)
        end = offset + limit
        return {
            "id": part.id, "kind": part.kind, "name": part.name, "source": part.source,
            "bytes": part.bytes, "tokens": part.tokens, "hash": part.hash.hex(),
            "redacted": redacted, "chars": len(text), "offset": offset,
            "text": text[offset:end], "next": end if end < len(text) else None,
        }  # fmt: skip

    async def compare(self, a: str, b: str, most: int) -> Json:
        """`trace.compare`."""
        redactor = self._redactor()

        def look(db: sqlite3.Connection) -> _Compared:
            return _Compared(db, reader.call(db, a), reader.call(db, b))

        both = await self._recorder.read(look)
        size = sum(len(old) + len(new) for old, new in both.texts)
        if size > FAR_CHARS:
            lines, cut = await self._worker.call(shown.diffs, both.texts, redactor, most)
        else:
            lines, cut = shown.diffs(both.texts, redactor, most)
        for row, found in zip(both.changed, lines, strict=True):
            row["lines"] = [{"op": sign, "text": text} for sign, text in found]
        return {**both.payload, "truncated": cut}

    async def search(self, call_id: str, text: str, most: int) -> Json:
        """`trace.search`."""
        redactor = self._redactor()

        def look(db: sqlite3.Connection) -> tuple[list[str], list[str]]:
            parts = contents.contents(db, reader.call(db, call_id)).parts
            texts = [said for _, said in contents.texts(db, parts)]
            return [part.id for part in parts], texts

        ids, texts = await self._recorder.read(look)
        if sum(map(len, texts)) > FAR_CHARS:
            found = await self._worker.call(shown.search, texts, text, redactor, most)
        else:
            found = shown.search(texts, text, redactor, most)
        matches, total, places = found
        rows = [
            {
                "partId": ids[match.place], "index": match.place, "offset": match.offset,
                "before": match.before, "match": match.match, "after": match.after,
            }
            for match in matches
        ]  # fmt: skip
        return {"matches": rows, "total": total, "parts": places}

    async def _shown(self, part: StoredPart, raw: str, redactor: Redactor) -> tuple[str, bool]:
        """The text without secrets, kept for the next page of it."""
        key = (part.hash, part.raw)
        kept = self._texts.pop(key, None)
        if kept is None or kept[0] is not redactor:
            if len(raw) > FAR_CHARS:
                text = (await self._worker.call(shown.hidden, [raw], redactor))[0]
            else:
                text = redactor.text(raw)
            kept = (redactor, text, text != raw)
        self._texts[key] = kept
        if len(self._texts) > TEXTS_KEPT:
            self._texts.popitem(last=False)
        return kept[1], kept[2]


class _Compared:
    """Two calls, what became of each part, and the texts of those that changed."""

    def __init__(self, db: sqlite3.Connection, a: Found, b: Found) -> None:
        ratio = b.record.ratio
        two_sides = contents.contents(db, a, ratio), contents.contents(db, b, ratio)
        one, two = (known.parts for known in two_sides)
        found = pairs([_side(part) for part in one], [_side(part) for part in two])
        changed = [pair for pair in found if pair.state == "changed"]
        old = [one[pair.a] for pair in changed if pair.a is not None]
        new = [two[pair.b] for pair in changed if pair.b is not None]
        self.texts = [
            (was[1], now[1])
            for was, now in zip(contents.texts(db, old), contents.texts(db, new), strict=True)
        ]
        before, after = (view(known, None).parts for known in two_sides)
        rows = [_row(pair, before, after) for pair in found]
        self.changed = [row for row in rows if row["state"] == "changed"]
        """Rows that still want their lines."""
        self.payload: Json = {
            "a": wire(a.record),
            "b": wire(b.record),
            "bytes": b.record.body_bytes - a.record.body_bytes,
            "tokens": sum(p.tokens for p in two) - sum(p.tokens for p in one),
            "firstChange": next(
                (place for place, pair in enumerate(found) if pair.state != "same"), None
            ),
            "parts": rows,
        }


def _row(pair: Pair, one: Sequence[PartRow], two: Sequence[PartRow]) -> Json:
    return {
        "state": pair.state,
        "a": None if pair.a is None else wire(one[pair.a]),
        "b": None if pair.b is None else wire(two[pair.b]),
    }


def _side(part: StoredPart) -> Side:
    return Side(part.id, part.kind, part.hash)


def _found(db: sqlite3.Connection, call_id: str | None, session_key: str | None) -> Found:
    return reader.call(db, call_id) if call_id else reader.last_call(db, session_key)


def _with_parts(db: sqlite3.Connection, steps: Sequence[TraceEvent]) -> Iterator[TraceEvent]:
    """The steps as the live trace has them: the newest call with the list of its parts."""
    newest = max((step.seq for step in steps if step.kind is TraceKind.CALL_STARTED), default=None)
    for step in steps:
        if step.kind is not TraceKind.CALL_STARTED:
            yield step
            continue
        parts: list[Json] = []
        if step.seq == newest:
            found = reader.call(db, f"{step.run_id}/{step.data.get('callId')}")
            parts = [
                {"id": part.id, "kind": part.kind, "name": part.name, "source": part.source,
                 "tokens": part.tokens, "bytes": part.bytes}
                for part in contents.contents(db, found).parts
            ]  # fmt: skip
        yield replace(step, data={**step.data, "parts": parts})


def _json(value: object) -> Json:
    assert isinstance(value, dict)
    return value
