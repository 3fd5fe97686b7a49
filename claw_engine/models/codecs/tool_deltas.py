"""Which tool call does this delta belong to? Providers answer that in four different ways. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from msgspec import Struct

from claw_engine.models.base import ModelEvent, ToolCallDelta, ToolCallStart


class _Call(Struct):
    index: int  # ours: dense, in order of appearance
    id: str = ""
    name: str = ""
    pending: str = ""  # arguments that came before the name
    started: bool = False


class ToolDeltas:
    """Assembles parallel calls from deltas.

    A delta belongs to the call with its id; else to the call at its index, unless it brings
    another id and a name (some servers put every call at index 0); without index and id a name
    opens a new call and anything else continues the last one.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    @property
    def seen(self) -> bool:
        return bool(self._calls)

    def feed(self, delta: Mapping[str, object]) -> list[ModelEvent]:
        """Events of the `tool_calls` (or legacy `function_call`) of one delta."""
        events: list[ModelEvent] = []
        items = delta.get("tool_calls")
        if isinstance(items, list):
            for item in items:
                if isinstance(item, dict):
                    events += self._item(item)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            events += self._item({"index": 0, "function": legacy})
        return events

    def flush(self) -> list[ModelEvent]:
        """Calls that never got a name are announced with an empty one, so that none is lost."""
        events: list[ModelEvent] = []
        for call in self._calls:
            if not call.started:
                events += self._start(call)
        return events

    def _item(self, item: Mapping[str, object]) -> list[ModelEvent]:
        function = item.get("function")
        inner: Mapping[str, object] = function if isinstance(function, dict) else {}
        name = _text(inner.get("name"))
        arguments = _arguments(inner.get("arguments"))
        call = self._find(item.get("index"), _text(item.get("id")), name)
        call.name = call.name or name
        if not call.started:
            call.pending += arguments
            return self._start(call) if call.name else []
        return [ToolCallDelta(call.index, arguments)] if arguments else []

    def _find(self, index: object, id_: str, name: str) -> _Call:
        if id_ and id_ in self._by_id:
            return self._by_id[id_]
        at = index if isinstance(index, int) else None
        if at is not None:
            call = self._by_index.get(at)
            another = call is not None and bool(id_ and name and call.id and call.name)
            return self._open(at, id_) if call is None or another else self._adopt(call, id_)
        if id_ or name or not self._calls:
            return self._open(None, id_)
        return self._calls[-1]

    def _open(self, at: int | None, id_: str) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        if at is not None:
            self._by_index[at] = call
        return self._adopt(call, id_)

    def _adopt(self, call: _Call, id_: str) -> _Call:
        if id_ and not call.id:
            call.id = id_
        if id_:
            self._by_id[id_] = call
        return call

    def _start(self, call: _Call) -> list[ModelEvent]:
        call.started = True
        call.id = call.id or self._new_id()
        events: list[ModelEvent] = [ToolCallStart(call.index, call.id, call.name)]
        if call.pending:
            events.append(ToolCallDelta(call.index, call.pending))
        return events


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
