"""A trace store without an engine: what is told is written when the test says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from claw_engine.models.base import Encoded, ModelRef, Piece, Span
from claw_engine.parts import Part, PartKind
from claw_engine.protocol.trace import CallCause, TraceEvent, TraceKind
from claw_engine.storage.sqlite_driver import plain
from claw_engine.trace.noted import Begun, Change, Ended, Item, overlap
from claw_engine.trace.ports import Call, CallEnd, PieceLike
from claw_engine.trace.records import CallUsage
from claw_engine.trace.schema import prepare
from claw_engine.trace.writer import Writer

REF = ModelRef("fake", "one", "openai-completions", "http://localhost:1/v1")
MAIN = "agent:main:main"


def sizes(piece: PieceLike) -> dict[str, int]:
    return {part.id: len(part.text) // 4 for part in piece.parts}


def piece(part_id: str, text: str, kind: PartKind = PartKind.USER, source: str = "") -> Piece:
    """One part between quotes, as a message would have it."""
    data = text.encode()
    part = Part(part_id, kind, source or part_id, text, part_id)
    return Piece(b'"' + data + b'"', (Span(part_id, 1, 1 + len(data), "json-string"),), (part,))


def encoded(pieces: Sequence[Piece]) -> Encoded:
    return Encoded(b"".join(one.data for one in pieces), tuple(pieces), "http://x")


class Rig:
    """Use: `begin`, `end`, `tell`, `flush`, then ask the reader with `db`."""

    def __init__(self, folder: Path) -> None:
        self.db = plain().connect(str(folder / "trace.db"))
        self.db.execute("PRAGMA foreign_keys=ON")
        prepare(self.db)
        self.writer = Writer()
        self.items: list[Item] = []
        self.now = 1_000
        self._last: dict[str, Sequence[PieceLike]] = {}
        self._seq: dict[str, int] = {}

    def begin(
        self, what: Encoded, *, run: str = "r", call: str = "call-1", session: str = MAIN,
        cause: CallCause = CallCause.TURN, parent: str | None = None, ref: ModelRef = REF,
        ratio: float = 1.0,
    ) -> None:  # fmt: skip
        pieces = cast("Sequence[PieceLike]", what.pieces)
        last = self._last.get(session, ())
        ends = overlap(last, pieces) if last else (0, 0)
        self._last[session] = pieces
        self.now += 10
        told = Call(run, session, "main", call, cause, parent, 1, ref.name, ref.provider, ref.api,
                    self.now, len(what.body) // 4, ratio)  # fmt: skip
        self.items.append(Begun(told, what.body, Change(pieces, *ends, sizes)))

    def end(self, *, run: str = "r", call: str = "call-1", **fields: object) -> None:
        self.now += 10
        values: dict[str, object] = {
            "status": "ok", "finish": "stop", "ts": self.now, "ttft_ms": 4, "text": "yes",
            "usage": CallUsage(70, 5, 30, 0),
        }  # fmt: skip
        end = CallEnd(**(values | fields))  # type: ignore[arg-type]  # keyword table of a test
        self.items.append(Ended(run, call, end))

    def tell(self, kind: TraceKind, *, run: str = "r", session: str = MAIN, **data: object) -> None:
        self.now += 10
        self._seq[run] = self._seq.get(run, 0) + 1
        self.items.append(TraceEvent(run, session, self._seq[run], self.now, kind, data))

    def flush(self) -> None:
        items, self.items = self.items, []
        self.writer.write(self.db, items)

    def close(self) -> None:
        self.db.close()
