"""What protocol 4 tells of a run beyond protocol 3 (protocol digest §3). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from claw_engine.protocol.trace import TraceEvent, TraceKind

MAX_PARTIAL = 16_000
"""Characters of a running tool's output that an update repeats: the newest."""

NO_MODEL: Mapping[str, object] = {"phase": "model", "provider": None, "model": None}
"""The model is let go."""

GIST_CHARS = 120
_TELLING = ("command", "path", "file_path", "query", "pattern", "url", "sessionKey", "action")

_GAP = "\n\n"


class Story(Struct):
    """The words of a whole run, over its model calls, and what tools have written so far."""

    before: str = ""
    told: str = ""
    calls: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    gists: dict[str, str] = field(default_factory=dict)
    """What each running tool call is about, in a few words."""

    def first_call(self) -> bool:
        self.calls += 1
        return self.calls == 1

    def end_call(self, text: str) -> None:
        """The words of a finished model call stay."""
        if text.strip():
            self.before = f"{self.before}{_GAP}{text}" if self.before else text

    def whole(self, text: str) -> str:
        """All words with those of the running call."""
        return f"{self.before}{_GAP}{text}" if self.before and text else self.before or text

    def delta(self, whole: str) -> dict[str, object]:
        """What is new since the last delta; all of it with `replace` if it does not go on."""
        old, self.told = self.told, whole
        if whole.startswith(old):
            return {"deltaText": whole[len(old) :]}
        return {"deltaText": whole, "replace": True}

    def final(self, text: str) -> str:
        """The words at the end: `text` is the last call's."""
        if not text:
            return ""
        return text if self.before.endswith(text) or not self.before else self.whole(text)

    def output(self, tool_call_id: str, delta: str) -> None:
        kept = self.outputs.get(tool_call_id, "") + delta
        self.outputs[tool_call_id] = kept[-MAX_PARTIAL:]

    def partial(self, tool_call_id: str) -> dict[str, object]:
        return _content(self.outputs.get(tool_call_id, ""))

    def forget_output(self, tool_call_id: str) -> None:
        self.outputs.pop(tool_call_id, None)


def agent_of(session_key: str) -> str:
    """The agent in a full session key."""
    parts = session_key.split(":", 2)
    return parts[1] if len(parts) > 1 and parts[0] == "agent" else "main"


def agent_payload(
    event: TraceEvent, session_key: str, seq: int, stream: str, data: Mapping[str, object]
) -> dict[str, object]:
    """The payload of an `agent` event."""
    return {
        "runId": event.run_id,
        "stream": stream,
        "data": data,
        "sessionKey": session_key,
        "agentId": agent_of(session_key),
        "seq": seq,
        "ts": event.ts,
        "isHeartbeat": False,
    }


def model_phase(data: Mapping[str, object]) -> dict[str, object]:
    """A model is asked. `model` in the trace is provider/name."""
    provider, _, model = str(data.get("model", "")).partition("/")
    return {"phase": "model", "provider": provider, "model": model or provider}


def output_tokens(data: Mapping[str, object]) -> dict[str, object] | None:
    usage = data.get("usage")
    tokens = usage.get("output") if isinstance(usage, Mapping) else None
    return {"outputTokens": tokens} if isinstance(tokens, int) else None


def approval_phase(event: TraceEvent) -> dict[str, object]:
    """A tool call waits for the operator, or no longer."""
    waiting = event.kind is TraceKind.TOOL_WAITING
    return {
        "phase": "waiting-approval" if waiting else "approval-resolved",
        "approvalId": event.data.get("approvalId"),
        "toolCallId": event.data.get("toolCallId"),
    }


def tool_result(data: Mapping[str, object]) -> dict[str, object]:
    details: dict[str, object] = {"status": "completed" if data.get("status") == "ok" else "failed"}
    if data.get("exitCode") is not None:
        details["exitCode"] = data["exitCode"]
    if data.get("durationMs") is not None:
        details["durationMs"] = data["durationMs"]
    return {**_content(str(data.get("text") or "")), "details": details}


def gist(args: object) -> str:
    """What a tool call is about, on one line: its command, its file, what it looks for."""
    given = args if isinstance(args, Mapping) else {}
    for name in _TELLING:
        value = given.get(name)
        if isinstance(value, str) and (line := " ".join(value[: GIST_CHARS * 2].split())):
            return line if len(line) <= GIST_CHARS else f"{line[: GIST_CHARS - 1]}…"
    return ""


def tool_item(event: TraceEvent, name: str, about: str) -> dict[str, object] | None:
    """The row that a client shows for a tool call; None for what does not change it."""
    data = event.data
    tool_id = str(data.get("toolCallId", ""))
    item: dict[str, object] = {
        "itemId": f"tool:{tool_id}", "toolCallId": tool_id, "name": name, "kind": "tool",
        "title": f"{name.capitalize()} {about}".rstrip(), "meta": about,
    }  # fmt: skip
    match event.kind:
        case TraceKind.TOOL_STARTED:
            return {**item, "phase": "start", "status": "running", "startedAt": event.ts}
        case TraceKind.TOOL_ENDED:
            status = "completed" if data.get("status") == "ok" else "failed"
            return {**item, "phase": "end", "status": status, "endedAt": event.ts}
        case _:
            return None


def run_end(
    end: Mapping[str, object], started_ms: int, text: str, *, aborted: bool
) -> dict[str, object]:
    """The end of a run as protocol 4 tells it."""
    return {
        **end,
        "startedAt": started_ms,
        "stopReason": "aborted" if aborted else "stop",
        "aborted": aborted,
        "livenessState": "working",
        "replayInvalid": False,
        "executionSettled": True,
        "terminalReply": {"disposition": "visible" if text else "silent", "text": text},
    }


def error_kind(error: object) -> str:
    """refusal, timeout, rate_limit, context_length or unknown, from the words of an error."""
    said = str(error).lower()
    for kind, words in (
        ("rate_limit", ("429", "rate limit")),
        ("timeout", ("timeout", "timed out", "took longer")),
        ("context_length", ("context", "too long")),
    ):
        if any(word in said for word in words):
            return kind
    return "unknown"


def _content(text: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}]}
