"""The journal's records and what they add up to. Pure: no disk, no clock.

Record format 1 (ours, documented in docs/state-directory.md): one JSON object a line,
`{v, seq, ts, kind, id, …}` with kind `opened`, `accepted`, `started`, `settled` or a final mark.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.inbox.model import Accepted, InboundMessage, Mark, inbound_from_json

VERSION = 1
REMEMBERED = 2000
"""Finished messages whose ids stay known, so that a late repeat starts no second run."""

Json: TypeAlias = dict[str, object]

_MARKS = frozenset(mark.value for mark in Mark)


class JournalTooNew(ClawError):
    """A newer version wrote the journal; reading it as ours would lose messages."""


class Settled(Struct, frozen=True):
    """A finished message: enough to recognise a repeat. `ts` is the wall ms of its acceptance."""

    seq: int
    ts: int
    outcome: str


class Ledger:
    """Open messages in order of acceptance, and the last finished ones."""

    def __init__(self) -> None:
        self.seq = 0
        self._open: dict[str, Accepted] = {}
        self._started: set[str] = set()
        self._settled: OrderedDict[str, Settled] = OrderedDict()

    def next_seq(self) -> int:
        """The next number; grows for ever, also across restarts."""
        self.seq += 1
        return self.seq

    def known(self, message: InboundMessage) -> Accepted | None:
        """The earlier acceptance of this id, marked as a repeat; None for a new one."""
        first = self._open.get(message.id)
        if first is not None:
            state = Mark.STARTED.value if message.id in self._started else "accepted"
            return Accepted(first.seq, first.ts, first.message, True, state)
        old = self._settled.get(message.id)
        return None if old is None else Accepted(old.seq, old.ts, message, True, old.outcome)

    def is_open(self, message_id: str) -> bool:
        """Accepted and not finished."""
        return message_id in self._open

    def accept(self, accepted: Accepted) -> None:
        """A durable acceptance."""
        self._open[accepted.id] = accepted

    def mark(self, message_id: str, mark: Mark) -> None:
        """A mark; one for a message that is not open changes nothing."""
        first = self._open.get(message_id)
        if first is None:
            return
        if not mark.final:
            self._started.add(message_id)
            return
        del self._open[message_id]
        self._started.discard(message_id)
        self._remember(message_id, Settled(first.seq, first.ts, mark.value))

    def _remember(self, message_id: str, settled: Settled) -> None:
        self._settled[message_id] = settled
        while len(self._settled) > REMEMBERED:
            self._settled.popitem(last=False)

    def apply(self, record: Mapping[str, object]) -> bool:
        """Take one record read from disk; False when it is not understood.

        Raises JournalTooNew.
        """
        version = record.get("v")
        if isinstance(version, int) and version > VERSION:
            raise JournalTooNew(
                f"The inbox journal was written by a newer claw-tui (format {version}).",
                hint="Start that version, or move inbox/journal.jsonl away.",
            )
        seq, ts, kind, message_id = (record.get(k) for k in ("seq", "ts", "kind", "id"))
        if not isinstance(seq, int) or not isinstance(kind, str) or version != VERSION:
            return False
        self.seq = max(self.seq, seq)
        if kind == "opened":
            return True
        if not isinstance(message_id, str):
            return False
        when = ts if isinstance(ts, int) else 0
        if kind == "accepted":
            raw = record.get("msg")
            if not isinstance(raw, dict):
                return False
            if message_id not in self._open and message_id not in self._settled:
                self.accept(Accepted(seq, when, inbound_from_json(message_id, raw)))
            return True
        if kind == "settled":
            self._remember(message_id, Settled(seq, when, str(record.get("outcome", ""))))
            return True
        if kind not in _MARKS:
            return False
        self.mark(message_id, Mark(kind))
        return True

    def not_started(self) -> tuple[Accepted, ...]:
        """Open messages whose run never began, oldest first."""
        return tuple(a for a in self._open.values() if a.id not in self._started)

    def started(self) -> tuple[Accepted, ...]:
        """Open messages whose run began, oldest first."""
        return tuple(a for a in self._open.values() if a.id in self._started)

    def records(self, now_ms: int) -> Iterator[Json]:
        """The shortest journal that means the same."""
        yield {"v": VERSION, "seq": self.seq, "ts": now_ms, "kind": "opened"}
        for message_id, old in self._settled.items():
            yield {
                "v": VERSION,
                "seq": old.seq,
                "ts": old.ts,
                "kind": "settled",
                "id": message_id,
                "outcome": old.outcome,
            }
        for accepted in self._open.values():
            yield accepted_record(accepted)
            if accepted.id in self._started:
                yield mark_record(self.seq, now_ms, accepted.id, Mark.STARTED, "")


def accepted_record(accepted: Accepted) -> Json:
    """The line of an acceptance."""
    return {
        "v": VERSION,
        "seq": accepted.seq,
        "ts": accepted.ts,
        "kind": "accepted",
        "id": accepted.id,
        "msg": accepted.message.to_json(),
    }


def mark_record(seq: int, now_ms: int, message_id: str, mark: Mark, detail: str) -> Json:
    """The line of a mark."""
    record: Json = {"v": VERSION, "seq": seq, "ts": now_ms, "kind": mark.value, "id": message_id}
    if detail:
        record["detail"] = detail
    return record
