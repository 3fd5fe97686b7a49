"""From our own trace to OpenClaw's `agent` and `chat` events, of protocol 3 and 4 at once.

Pure: trace events in, wire events out, the only clock is the events' own `ts`. Shapes and rules:
gateway digest §1.8-1.9, protocol digest §3. Texts are cumulative, under 3 within one model call,
under 4 in `chat` over the whole run. What only 4 tells is made in translate4.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from claw_engine.gateway import translate4
from claw_engine.gateway.wire_events import OVERHEAD, Audience, Delivery, WireEvent
from claw_engine.protocol.trace import TraceEvent, TraceKind

CHAT_DELTA_MS = 150
"""At most one `chat` delta a run in this time (digest §1.9)."""

_STOP_REASON = {"user": "rpc", "aborted": "rpc", "interrupted": "restart"}
"""OpenClaw's word for why a run was stopped, where it is not ours."""


class _Run(Struct):
    """`seq` counts the events of the run under protocol 3, `seq4` under 4, which has more."""

    session_key: str
    seq: int = 0
    seq4: int = 0
    started_ms: int = 0
    story: translate4.Story = field(default_factory=translate4.Story)
    call_id: str = ""
    text: str = ""
    thinking: str = ""
    chat_at: int = 0
    dirty: bool = False
    tool_names: dict[str, str] = field(default_factory=dict)
    tool_update_at: dict[str, int] = field(default_factory=dict)


class ChatTranslator:
    """Follows every run that is going on; forgets it at its end. `full` says whether a session
    tells its tools' output (verbose level `full`); protocol 4 is told in any case."""

    def __init__(self, full: Callable[[str], bool] = lambda session_key: False) -> None:
        self._full = full
        self._runs: dict[str, _Run] = {}

    @property
    def behind(self) -> bool:
        """Whether some text has not been told in a `chat` delta yet."""
        return any(run.dirty for run in self._runs.values())

    def feed(self, event: TraceEvent, *, tokens: bool = True) -> Iterator[WireEvent]:
        """Wire events for one trace event; without `tokens` the per-token stream is left out."""
        run = self._runs.get(event.run_id)
        if run is None:
            run = self._runs[event.run_id] = _Run(event.session_key)
        data = event.data
        match event.kind:
            case TraceKind.RUN_STARTED:
                run.started_ms = event.ts
                yield from self._status(run, event, "preparing_context")
                begun = {"phase": "start", "startedAt": event.ts}
                yield self._agent(run, event, "lifecycle", begun)
            case TraceKind.CALL_STARTED:
                if run.story.first_call():
                    yield from self._status(run, event, "starting_model")
                yield self._only4(run, event, "lifecycle", translate4.model_phase(data))
            case TraceKind.TEXT:
                yield from self._text(run, event, tokens)
            case TraceKind.REASONING:
                self._enter_call(run, data)
                delta = str(data.get("delta", ""))
                run.thinking += delta
                if tokens:
                    so_far = {"text": run.thinking, "delta": delta}
                    yield self._agent(run, event, "thinking", so_far)
            case TraceKind.CALL_ENDED:
                yield from self._flush(event.run_id, run, event.ts)
                if (used := translate4.output_tokens(data)) is not None:
                    yield self._only4(run, event, "usage", used)
            case TraceKind.TOOL_WAITING | TraceKind.TOOL_DECIDED:
                yield self._only4(run, event, "lifecycle", translate4.approval_phase(event))
            case TraceKind.TOOL_STARTED | TraceKind.TOOL_OUTPUT | TraceKind.TOOL_ENDED:
                yield from self._tool(run, event)
            case TraceKind.RUN_ENDED:
                yield from self._ended(run, event)
                del self._runs[event.run_id]
            case _:
                pass

    def flush(self, now_ms: int) -> Iterator[WireEvent]:
        """`chat` deltas for text that waited out its 150 ms."""
        for run_id, run in self._runs.items():
            if run.dirty and now_ms - run.chat_at >= CHAT_DELTA_MS:
                yield from self._flush(run_id, run, now_ms)

    def forget(self) -> None:
        """Events were lost upstream: start afresh; runs are picked up where they are."""
        self._runs.clear()

    def _enter_call(self, run: _Run, data: Mapping[str, object]) -> None:
        call_id = str(data.get("callId", ""))
        if call_id != run.call_id:
            run.call_id = call_id
            run.story.end_call(run.text)
            run.text = run.thinking = ""

    def _text(self, run: _Run, event: TraceEvent, tokens: bool) -> Iterator[WireEvent]:
        self._enter_call(run, event.data)
        delta = str(event.data.get("delta", ""))
        run.text += delta
        run.dirty = True
        if tokens:
            so_far = {"text": run.text, "delta": delta}
            yield self._agent(run, event, "assistant", so_far)
        if event.ts - run.chat_at >= CHAT_DELTA_MS:
            yield from self._flush(event.run_id, run, event.ts)

    def _flush(self, run_id: str, run: _Run, now_ms: int) -> Iterator[WireEvent]:
        if not run.dirty:
            return
        run.dirty = False
        run.chat_at = now_ms
        text = run.text
        extra = {"message": message(text, now_ms)}
        so_far = run.story.whole(text)
        extra4 = {**run.story.delta(so_far), "message": message(so_far, now_ms)}
        yield self._chat(run_id, run, "delta", extra, len(so_far), extra4)

    def _tool(self, run: _Run, event: TraceEvent) -> Iterator[WireEvent]:
        data = event.data
        tool_id = str(data.get("toolCallId", ""))
        out: dict[str, object]
        about = run.story.gists.get(tool_id, "")
        if event.kind is TraceKind.TOOL_STARTED:
            run.tool_names[tool_id] = str(data.get("name", ""))
            about = run.story.gists[tool_id] = translate4.gist(data.get("args"))
            out = out4 = {"phase": "start", "args": data.get("args", {})}
        elif event.kind is TraceKind.TOOL_OUTPUT:
            run.story.output(tool_id, str(data.get("delta", "")))
            if event.ts - run.tool_update_at.get(tool_id, 0) < CHAT_DELTA_MS:
                return
            run.tool_update_at[tool_id] = event.ts
            out = {"phase": "update"}
            more = {"partialResult": run.story.partial(tool_id)}
            out, out4 = (out | more if self._full(run.session_key) else out), out | more
        else:
            run.tool_update_at.pop(tool_id, None)
            run.story.gists.pop(tool_id, None)
            out = {"phase": "result", "isError": data.get("status") != "ok", "meta": about}
            more = {"result": translate4.tool_result(data)}
            out, out4 = (out | more if self._full(run.session_key) else out), out | more
            run.story.forget_output(tool_id)
        name = run.tool_names.get(tool_id) or str(data.get("name", ""))
        head = {"name": name, "toolCallId": tool_id}
        row = translate4.tool_item(event, name, about)
        starts = event.kind is TraceKind.TOOL_STARTED
        if row is not None and starts:
            yield self._only4(run, event, "item", row)
        yield self._agent(run, event, "tool", {**head, **out}, {**head, **out4})
        if row is not None and not starts:
            yield self._only4(run, event, "item", row)

    def _ended(self, run: _Run, event: TraceEvent) -> Iterator[WireEvent]:
        data, now = event.data, event.ts
        yield from self._flush(event.run_id, run, now)
        text = str(data.get("text") or "")
        said: dict[str, object] = {"message": message(text, now)} if text else {}
        told = run.story.final(text)
        said4: dict[str, object] = {"message": message(told, now)} if told else {}
        end: dict[str, object] = {"phase": "end", "endedAt": now}
        match data.get("status"):
            case "done":
                reason = {"stopReason": "stop"}
                end4 = translate4.run_end(end, run.started_ms, told, aborted=False)
                yield self._only4(run, event, "lifecycle", {**end4, "phase": "finishing"})
                yield self._only4(run, event, "lifecycle", translate4.NO_MODEL)
                yield self._agent(run, event, "lifecycle", end, end4)
                size = len(told)
                yield self._chat(event.run_id, run, "final", said, size, {**reason, **said4})
            case "failed":
                why = _error_text(data.get("error"))
                end = {"phase": "error", "error": why, "endedAt": now}
                yield self._agent(run, event, "lifecycle", end)
                extra: dict[str, object] = {"errorMessage": why}
                kind = {"errorKind": translate4.error_kind(data.get("error"))}
                yield self._chat(event.run_id, run, "error", extra, len(why), {**extra, **kind})
            case status:
                end4 = translate4.run_end(end, run.started_ms, told, aborted=True)
                yield self._agent(run, event, "lifecycle", {**end, "aborted": True}, end4)
                key = str(data.get("stopReason") or status or "user")
                why_stopped = {"stopReason": _STOP_REASON.get(key, key)}
                yield self._chat(
                    event.run_id, run, "aborted", {**said, **why_stopped}, len(told),
                    {**said4, **why_stopped},
                )  # fmt: skip

    def _status(self, run: _Run, event: TraceEvent, phase: str) -> Iterator[WireEvent]:
        """What goes on before the first word: protocol 4 tells it twice."""
        run.seq4 += 1
        payload = {
            "runId": event.run_id,
            "sessionKey": run.session_key,
            "agentId": translate4.agent_of(run.session_key),
            "seq": run.seq4,
            "state": "status",
            "phase": phase,
        }
        yield WireEvent(
            "chat", payload, delivery=Delivery.DROPPABLE, run_id=event.run_id,
            session_key=run.session_key, group=("chat", event.run_id), only4=True,
        )  # fmt: skip
        yield self._only4(run, event, "run_status", {"phase": phase})

    def _only4(
        self, run: _Run, event: TraceEvent, stream: str, data: Mapping[str, object]
    ) -> WireEvent:
        run.seq4 += 1
        payload = translate4.agent_payload(event, run.session_key, run.seq4, stream, data)
        return WireEvent(
            "agent", payload, OVERHEAD * 2, run_id=event.run_id, session_key=event.session_key,
            group=("agent", event.run_id), only4=True,
        )  # fmt: skip

    def _agent(
        self,
        run: _Run,
        event: TraceEvent,
        stream: str,
        data: Mapping[str, object],
        data4: Mapping[str, object] | None = None,
    ) -> WireEvent:
        run.seq += 1
        run.seq4 += 1
        payload = {
            "runId": event.run_id,
            "stream": stream,
            "data": data,
            "sessionKey": event.session_key,
            "seq": run.seq,
            "ts": event.ts,
        }
        more = data if data4 is None else data4
        payload4 = translate4.agent_payload(event, run.session_key, run.seq4, stream, more)
        streaming = stream in ("assistant", "thinking")
        audience = Audience.TOKEN_STREAM if streaming else Audience.ALL
        if stream == "tool":
            audience = Audience.RUN_TOOLS
        grown = sum(len(str(v)) for v in more.values())
        return WireEvent(
            "agent",
            payload,
            cost=OVERHEAD + grown,
            delivery=Delivery.DROPPABLE if streaming else Delivery.MUST,
            numbered=stream != "tool",
            numbered4=True,
            audience=audience,
            run_id=event.run_id,
            session_key=event.session_key,
            group=("agent", event.run_id),
            merge_key=(stream, run.call_id) if streaming else None,
            payload4=payload4,
        )

    def _chat(
        self,
        run_id: str,
        run: _Run,
        state: str,
        extra: Mapping[str, object],
        size: int,
        extra4: Mapping[str, object],
    ) -> WireEvent:
        payload = {
            "runId": run_id,
            "sessionKey": run.session_key,
            "seq": run.seq,
            "state": state,
            **extra,
        }
        payload4 = {
            "runId": run_id,
            "sessionKey": run.session_key,
            "agentId": translate4.agent_of(run.session_key),
            "seq": run.seq4,
            "state": state,
            **extra4,
        }
        delta = state == "delta"
        return WireEvent(
            "chat",
            payload,
            cost=OVERHEAD + size,
            delivery=Delivery.DROPPABLE if delta else Delivery.MUST,
            run_id=run_id,
            session_key=run.session_key,
            group=("chat", run_id),
            merge_key="delta" if delta else None,
            payload4=payload4,
        )


def message(text: str, now_ms: int) -> dict[str, object]:
    """An assistant's words as `chat` carries them."""
    content = [{"type": "text", "text": text}]
    return {"role": "assistant", "content": content, "timestamp": now_ms}


def _error_text(error: object) -> str:
    if isinstance(error, Mapping):
        return " ".join(str(error[k]) for k in ("title", "hint") if error.get(k)) or "run failed"
    return str(error or "run failed")


def trace_event(event: TraceEvent) -> WireEvent:
    """Our own `trace` event, for the connections that subscribed."""
    delta = event.merge_key() is not None
    size = len(str(event.data.get("delta", ""))) if delta else _rough_size(event.data)
    return WireEvent(
        "trace",
        event.to_json(),
        cost=OVERHEAD + size,
        delivery=Delivery.DROPPABLE if delta else Delivery.MUST,
        numbered=False,
        audience=Audience.TRACE,
        run_id=event.run_id,
        session_key=event.session_key,
        group=("trace", event.run_id),
        merge_key=event.merge_key(),
    )


def _rough_size(data: Mapping[str, object]) -> int:
    """Bytes of the texts in `data`, roughly; lists of parts count 150 each."""
    size = 0
    for value in data.values():
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, list | tuple):
            size += 150 * len(value)
        elif isinstance(value, Mapping):
            size += 32 + _rough_size(value)
    return size
