"""Messages on their way in, and what the journal knows about them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field


class InboundMessage(Struct, frozen=True):
    """A message as it was handed in.

    `id` is the run id and the idempotency key, `source` says where it came from (console, cli,
    gateway …), `received_ms` is wall time, `extra` holds JSON values for later rooms.
    """

    id: str
    session_key: str
    agent_id: str
    text: str
    source: str
    received_ms: int
    thinking: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """The message inside an `accepted` record (its id stands in the record)."""
        out: dict[str, object] = {
            "sessionKey": self.session_key,
            "agentId": self.agent_id,
            "text": self.text,
            "source": self.source,
            "receivedMs": self.received_ms,
        }
        if self.thinking is not None:
            out["thinking"] = self.thinking
        if self.extra:
            out["extra"] = dict(self.extra)
        return out


def inbound_from_json(message_id: str, raw: Mapping[str, object]) -> InboundMessage:
    """The message of an `accepted` record; missing fields are empty."""
    thinking, extra, received = raw.get("thinking"), raw.get("extra"), raw.get("receivedMs")
    return InboundMessage(
        message_id,
        str(raw.get("sessionKey", "")),
        str(raw.get("agentId", "")),
        str(raw.get("text", "")),
        str(raw.get("source", "")),
        received if isinstance(received, int) else 0,
        thinking if isinstance(thinking, str) else None,
        extra if isinstance(extra, dict) else {},
    )


class Mark(StrEnum):
    """What became of a message: the record kinds that may follow `accepted`."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    ABORTED = "aborted"
    INTERRUPTED = "interrupted"

    @property
    def final(self) -> bool:
        """Nothing follows this mark."""
        return self is not Mark.STARTED


class Accepted(Struct, frozen=True):
    """A message that is on disk. `seq` orders all acceptances, across restarts; `ts` is wall ms.

    `repeat` is True when this id had been accepted before: no second run; `state` is then what is
    known of the first ("accepted", or the value of a Mark).
    """

    seq: int
    ts: int
    message: InboundMessage
    repeat: bool = False
    state: str = "accepted"

    @property
    def id(self) -> str:
        return self.message.id


class Recovered(Struct, frozen=True):
    """What a dead engine left: messages never begun, runs cut short (both oldest first), and
    sentences about damage that was mended."""

    not_started: tuple[Accepted, ...] = ()
    interrupted: tuple[Accepted, ...] = ()
    repairs: tuple[str, ...] = ()
