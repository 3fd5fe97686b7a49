"""OpenClaw's `agent` and `chat` events as our trace events: pure, for protocol 3 and 4.

Known traps (wire facts §2): a send while busy gets an empty `final` at once and its answer comes
under another run id; tool events carry no number; text is cumulative; a reply of a command has
`chat` events only; the end is told twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import Struct, field

V = TypeVar("V")
Json = Mapping[str, object]
EMPTY: Json = {}

MAX_RUNS = 500
"""Ended runs whose ids are remembered, so that what comes late begins no new run."""


class _Stream(Struct):
    """One growing text: how much of it was told, and the call it counts to."""

    told: str = ""
    call: int = 0


class _Run(Struct):
    key: str
    seq: int = 0
    started: bool = False
    call: int = 0
    text: _Stream = field(default_factory=_Stream)
    thinking: _Stream = field(default_factory=_Stream)
    model: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    state: str = "queued"
    """Where it is, in our engine's words."""
    spoke: bool = False
    """Its words come as `agent` events; `chat` only repeats them."""


class ForeignEvents:
    """Feed it the gateway's events in order; it yields payloads of `trace`."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._ended: dict[str, None] = {}
        self._sent: dict[str, tuple[str, str]] = {}
        """Our own messages that no run has begun with yet: id → (session, text)."""
        self._waiting: dict[str, list[str]] = {}
        """Those of them that the gateway said it queued, by session, oldest first."""
        self._decided: dict[str, tuple[str, str]] = {}
        """Requests that were answered: decision, and by whom. Protocol 4's runs only name them."""

    def active(self, key: str) -> str:
        """A run of this session that is going on; empty when there is none."""
        return next((run_id for run_id, run in self._runs.items() if run.key == key), "")

    def forget(self) -> None:
        """The connection was lost: nothing is known of what went on meanwhile."""
        self._runs.clear()
        self._sent.clear()
        self._waiting.clear()

    def sent(self, run_id: str, key: str, message: str, ts: int) -> Iterator[Json]:
        """We sent a message: the gateway's events do not repeat it."""
        if run_id in self._runs or run_id in self._ended:
            return
        self._sent[run_id] = (key, message)
        run = _Run(key)
        yield self._event(run_id, run, ts, "run.queued",
                          {"message": message, "source": "console", "lane": "main"})  # fmt: skip
        self._runs[run_id] = run

    def feed(self, event: str, payload: Json, now_ms: int) -> Iterator[Json]:
        if event == "exec.approval.resolved":
            said = (_text(payload, "decision"), _text(payload, "resolvedBy"))
            _remember(self._decided, _text(payload, "id"), said)
        run_id = _text(payload, "runId")
        if not run_id or run_id in self._ended:
            return
        ts = payload.get("ts")
        at = ts if isinstance(ts, int) else now_ms
        if event == "agent":
            yield from self._agent(run_id, payload, at)
        elif event == "chat":
            yield from self._chat(run_id, payload, at)

    # ── agent ───────────────────────────────────────────────────────────────────────────────

    def _agent(self, run_id: str, payload: Json, ts: int) -> Iterator[Json]:
        key, data = _text(payload, "sessionKey"), _obj(payload, "data")
        run = self._runs.get(run_id)
        if run is None:
            if not key:
                return  # an internal run that no session shows
            run = self._runs[run_id] = _Run(key)
        match _text(payload, "stream"):
            case "lifecycle":
                yield from self._lifecycle(run_id, run, data, ts)
            case "assistant":
                run.spoke = True
                yield from self._words(run_id, run, run.text, "text", data, ts)
            case "thinking":
                yield from self._words(run_id, run, run.thinking, "reasoning", data, ts)
            case "tool":
                yield from self._tool(run_id, run, data, ts)
            case "compaction":
                yield from self._begin(run_id, run, ts)
                words = {"start": "the gateway compacts this conversation", "end": "compacted"}
                if said := words.get(_text(data, "phase")):
                    yield self._event(run_id, run, ts, "notice", {"level": "info", "text": said})
            case "run_status" if _text(data, "phase") != "retrying":
                yield from self._begin(run_id, run, ts)
                doing = _text(data, "phase").replace("_", " ")
                yield from self._state(run_id, run, ts, "building", doing)
            case "run_status":
                yield from self._begin(run_id, run, ts)
                yield self._event(run_id, run, ts, "retry", {
                    "reason": _text(data, "message") or _text(data, "reason"),
                    "delayMs": data.get("delayMs", 0), "attempt": data.get("attempt", 1),
                })  # fmt: skip
            case _:
                return

    def _lifecycle(self, run_id: str, run: _Run, data: Json, ts: int) -> Iterator[Json]:
        match _text(data, "phase"):
            case "start":
                yield from self._begin(run_id, run, ts)
            case "model" if _text(data, "model"):
                run.model = f"{_text(data, 'provider')}/{_text(data, 'model')}"
                yield from self._begin(run_id, run, ts)
                run.call += 1
                yield from self._state(run_id, run, ts, "connecting")
                yield self._event(run_id, run, ts, "call.started",
                                  {"callId": f"call-{run.call}", "model": run.model})  # fmt: skip
            case "waiting-approval":
                yield from self._begin(run_id, run, ts)
                yield from self._state(run_id, run, ts, "parked")
                yield self._event(run_id, run, ts, "tool.waiting", dict(data))
            case "approval-resolved":
                approval = _text(data, "approvalId")
                decision, by = self._decided.pop(approval, (_text(data, "decision"), ""))
                yield self._event(run_id, run, ts, "tool.decided", {
                    "toolCallId": _text(data, "toolCallId"), "approvalId": approval,
                    "decision": decision or None, "by": by, "reason": "",
                })  # fmt: skip
                yield from self._state(run_id, run, ts, "tool")
            case "end":
                status = "aborted" if data.get("aborted") is True else "done"
                yield from self._end(run_id, run, ts, status)
            case "error":
                yield from self._end(run_id, run, ts, "failed", _text(data, "error"))
            case _:
                return

    def _words(
        self, run_id: str, run: _Run, stream: _Stream, kind: str, data: Json, ts: int
    ) -> Iterator[Json]:
        yield from self._begin(run_id, run, ts)
        whole, delta = _text(data, "text"), _text(data, "delta")
        if not whole:
            whole = stream.told + delta
        if whole.startswith(stream.told):
            new = whole[len(stream.told) :]
        else:  # another answer begins, or what was said is taken back
            new = whole
            stream.call += 1
        stream.told = whole
        if new:
            yield from self._state(run_id, run, ts, "streaming")
            call = f"{kind}-{stream.call}"
            yield self._event(run_id, run, ts, kind, {"callId": call, "delta": new})

    def _tool(self, run_id: str, run: _Run, data: Json, ts: int) -> Iterator[Json]:
        yield from self._begin(run_id, run, ts)
        call_id = _text(data, "toolCallId")
        head = {"toolCallId": call_id, "name": _text(data, "name")}
        match _text(data, "phase"):
            case "start":
                args = _obj(data, "args")
                yield from self._state(run_id, run, ts, "tool")
                yield self._event(run_id, run, ts, "tool.started", {**head, "args": args})
                run.text.told = run.thinking.told = ""
                run.text.call += 1
                run.thinking.call += 1
            case "update":
                whole, told = _content(data.get("partialResult")), run.outputs.get(call_id, "")
                new = whole[len(told) :] if whole.startswith(told) else whole
                run.outputs[call_id] = whole
                if new:
                    yield self._event(run_id, run, ts, "tool.output", {**head, "delta": new})
            case "result":
                told = run.outputs.pop(call_id, "")
                text = _content(data.get("result")) or told  # `meta` only repeats the arguments
                status = "error" if data.get("isError") is True else "ok"
                details = _obj(_obj(data, "result"), "details")
                yield self._event(run_id, run, ts, "tool.ended", {
                    **head, "status": status, "text": text,
                    "exitCode": details.get("exitCode"), "durationMs": details.get("durationMs"),
                })  # fmt: skip
                yield from self._state(run_id, run, ts, "between_tools")
            case _:
                return

    # ── chat ────────────────────────────────────────────────────────────────────────────────

    def _chat(self, run_id: str, payload: Json, ts: int) -> Iterator[Json]:
        key, state = _text(payload, "sessionKey"), _text(payload, "state")
        said = _content(payload.get("message"))
        run = self._runs.get(run_id)
        if run is None:
            if not key or state == "status":
                return
            run = self._runs[run_id] = _Run(key)
        match state:
            case "delta":
                if not run.spoke:
                    data = {"text": said} if said else {"delta": _text(payload, "deltaText")}
                    yield from self._words(run_id, run, run.text, "text", data, ts)
            case "final" if not run.started and not said:
                # Queued behind a run that is going on; the answer comes under another id.
                if run_id in self._sent:
                    self._waiting.setdefault(run.key, []).append(run_id)
                del self._runs[run_id]
            case "final":
                if not run.spoke:
                    yield from self._words(run_id, run, run.text, "text", {"text": said}, ts)
                yield from self._end(run_id, run, ts, "done")
            case "aborted":
                yield from self._end(run_id, run, ts, "aborted")
            case "error":
                yield from self._end(run_id, run, ts, "failed", _text(payload, "errorMessage"))
            case _:
                return

    # ── a run's frame ───────────────────────────────────────────────────────────────────────

    def _begin(self, run_id: str, run: _Run, ts: int) -> Iterator[Json]:
        if run.started:
            return
        run.started = True
        members: list[str] = []
        if run_id not in self._sent:  # what was queued in this session is what it answers
            members = self._waiting.pop(run.key, [])
        for member in (run_id, *members):
            self._sent.pop(member, None)
        yield self._event(run_id, run, ts, "run.started", {
            "model": run.model, "isAI": True, "waitMs": 0, "cause": "turn", "messages": members,
        })  # fmt: skip
        yield from self._state(run_id, run, ts, "building")

    def _state(self, run_id: str, run: _Run, ts: int, new: str, why: str = "") -> Iterator[Json]:
        """What the run does now; said when it changes or there is a reason to tell."""
        if new != run.state or why:
            old, run.state = run.state, new
            yield self._event(run_id, run, ts, "run.state",
                              {"old": old, "new": new, "reason": why})  # fmt: skip

    def _end(self, run_id: str, run: _Run, ts: int, status: str, error: str = "") -> Iterator[Json]:
        yield from self._begin(run_id, run, ts)
        yield self._event(run_id, run, ts, "run.ended", {
            "status": status, "text": run.text.told,
            "error": {"title": error or "the run failed"} if status == "failed" else None,
        })  # fmt: skip
        del self._runs[run_id]
        _remember(self._ended, run_id, None)

    def _event(self, run_id: str, run: _Run, ts: int, kind: str, data: Json) -> Json:
        run.seq += 1
        return {
            "runId": run_id, "sessionKey": run.key, "seq": run.seq, "ts": ts, "kind": kind,
            "data": data,
        }  # fmt: skip


def _remember(known: dict[str, V], name: str, value: V) -> None:
    known[name] = value
    while len(known) > MAX_RUNS:
        del known[next(iter(known))]


def _text(raw: Json, name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""


def _obj(raw: Json, name: str) -> Json:
    value = raw.get(name)
    return value if isinstance(value, dict) else EMPTY


def _content(value: object) -> str:
    """The text of a message or a tool result: a string, or blocks of which some are text."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    content = value.get("content", value.get("text"))
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        block["text"]
        for block in content
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    )
