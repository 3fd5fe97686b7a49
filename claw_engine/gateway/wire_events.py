"""Events on their way to clients: what one is, what it costs, and how two become one.

A `WireEvent` is shared by every connection that gets it; its JSON is made once, when the first
socket wants it. It must not know sockets, queues or who listens.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

_ENCODE = msgspec.json.Encoder().encode

OVERHEAD = 256
"""Bytes that an event costs besides its text: an estimate that keeps the books of an outbox."""


class Delivery(StrEnum):
    MUST = "must"
    """Delivered, or the connection is closed."""
    DROPPABLE = "droppable"
    """Left out for a client that is far behind; the client is then told to read again."""


class Audience(StrEnum):
    """Which connections get an event, besides the scope it needs."""

    ALL = "all"
    APPROVERS = "approvers"
    PAIRERS = "pairers"
    TRACE = "trace"
    """Those that subscribed to the trace of the event's session."""
    RUN_TOOLS = "run-tools"
    """Those with the cap `tool-events` that started the event's run."""
    KEYS = "keys"
    """Those that are told by keys which sessions changed: protocol 3, and our own clients."""
    SESSIONS = "sessions"
    """Those that subscribed to all sessions."""
    MESSAGES = "messages"
    """Those that subscribed to the messages of the event's session, or of all."""
    TOKEN_STREAM = "token-stream"
    """Everyone but clients with the cap `trace`, which get the same tokens there."""


class _Cache(Struct, eq=False):
    body: bytes | None = None
    body4: bytes | None = None

    def __eq__(self, other: object) -> bool:
        """What was already encoded is no part of an event's value."""
        return isinstance(other, _Cache)

    __hash__ = None  # type: ignore[assignment]  # mutable


class WireEvent(Struct, frozen=True):
    """One event for clients.

    `cost` is an estimate in bytes. `numbered` events take the connection's next `seq`; targeted
    ones carry none (gateway digest §1.8), but under protocol 4 those with `numbered4` do. Two
    neighbours of one `group` with one `merge_key` may become one while they wait. `payload4` is
    what protocol 4 says instead, `only4` an event that protocol 3 does not know.
    """

    name: str
    payload: Mapping[str, object]
    cost: int = OVERHEAD
    delivery: Delivery = Delivery.MUST
    numbered: bool = True
    audience: Audience = Audience.ALL
    run_id: str = ""
    session_key: str = ""
    group: Hashable | None = None
    merge_key: Hashable | None = None
    payload4: Mapping[str, object] | None = None
    numbered4: bool = False
    only4: bool = False
    state_version: Mapping[str, int] | None = None
    _cache: _Cache = field(default_factory=_Cache)

    def takes_number(self, protocol: int) -> bool:
        return self.numbered or (self.numbered4 and protocol >= 4)

    def said(self, protocol: int) -> Mapping[str, object]:
        """The payload under a protocol."""
        return self.payload if protocol < 4 or self.payload4 is None else self.payload4

    def line(self, seq: int | None, protocol: int = 3) -> bytes:
        """The event as one line of JSON, with the connection's number."""
        body = self.body(protocol)
        return body + b"}\n" if seq is None else b'%b,"seq":%d}\n' % (body, seq)

    def body(self, protocol: int) -> bytes:
        """Its JSON but for the number and the last brace: the same bytes for everybody."""
        cache, four = self._cache, protocol >= 4 and self.payload4 is not None
        body = cache.body4 if four else cache.body
        if body is None:
            head: dict[str, object] = {"type": "event", "event": self.name}
            head["payload"] = self.said(protocol)
            if self.state_version is not None:
                head["stateVersion"] = self.state_version
            body = json_bytes(head)[:-1]
            if four:
                cache.body4 = body
            else:
                cache.body = body
        return body

    def merged(self, newer: WireEvent) -> WireEvent:
        """This event and a newer one with the same `merge_key`, as one.

        `agent` and `trace` deltas add up, and so does the `deltaText` of protocol 4; of all others
        the newer replaces the older.
        """
        if self.name == "chat" and self.payload4 is not None and newer.payload4 is not None:
            if newer.payload4.get("replace"):
                return newer
            text = f"{self.payload4.get('deltaText', '')}{newer.payload4.get('deltaText', '')}"
            told: dict[str, object] = {**newer.payload4, "deltaText": text}
            if self.payload4.get("replace"):
                told["replace"] = True
            return replace(newer, payload4=told, _cache=_Cache())
        if self.name not in ("agent", "trace"):
            return newer
        old_data, new_data = self.payload["data"], newer.payload["data"]
        if not isinstance(old_data, Mapping) or not isinstance(new_data, Mapping):
            return newer
        delta = f"{old_data.get('delta', '')}{new_data.get('delta', '')}"
        data = {**new_data, "delta": delta}
        payload = {**newer.payload, "data": data}
        payload4 = None if newer.payload4 is None else {**newer.payload4, "data": data}
        grown = len(str(new_data.get("delta", "")))
        cost = self.cost + grown if self.name == "trace" else newer.cost + len(delta)
        return replace(newer, payload=payload, payload4=payload4, cost=cost, _cache=_Cache())


def json_bytes(value: object) -> bytes:
    """Compact UTF-8 JSON; NaN and infinities become null. Raises TypeError for what JSON cannot
    hold."""
    try:
        # Ten times as fast as the library's, and it runs for every event and answer.
        return _ENCODE(value)
    except (UnicodeEncodeError, TypeError, RecursionError):
        pass  # lone surrogates, mappings of other kinds
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "surrogatepass")
