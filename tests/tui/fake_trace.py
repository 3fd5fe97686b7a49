"""Recorded runs on a script: answers of the real shapes for the trace methods (docs/trace.md)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from claw_engine.client.base import ClientError
from claw_engine.protocol.frames import ErrorShape
from tests.tui.fake_client import MAIN, NOW, FakeClient, Script

WORKSPACE = "/home/op/.state/workspace"
Json = Mapping[str, object]


class FakePart(Struct, frozen=True):
    id: str
    kind: str
    name: str
    source: str
    text: str
    tokens: int
    redacted: bool = False

    def row(self, start: int, *, cached: bool, new: bool) -> dict[str, object]:
        size = len(self.text.encode())
        return {
            "id": self.id, "kind": self.kind, "name": self.name, "source": self.source,
            "bytes": size, "tokens": self.tokens, "basis": "estimated", "hash": str(hash(self)),
            "cached": cached, "isNew": new, "start": start, "end": start + size,
        }  # fmt: skip


def file(name: str, text: str, tokens: int) -> FakePart:
    path = f"{WORKSPACE}/{name}"
    return FakePart(f"file:{name}", "file", name, path, f"## {path}\n{text}", tokens)


AGENTS = "# Rules\n\nBe brief.\n" + "Never delete a backup without asking. " * 200
SECTION = FakePart("section:Tooling", "section", "Tooling", "section:Tooling",
                   "Tools are called by name.\n" * 180, 1210)  # fmt: skip
SAFETY = FakePart("section:Safety", "section", "Safety", "section:Safety", "Ask first.\n" * 900,
                  6800)  # fmt: skip
TOOL = FakePart("tool:exec", "tool", "exec", "tool:exec", '{"name": "exec"}' * 1200, 5100)
MEMORY = file("MEMORY.md", "The NAS is called nas. Token [hidden]\n" * 16, 200)
USER = FakePart("e1:0", "user", "user", "e1", "what's in the report?", 6)
CALL = FakePart("e2:call:t1", "tool_call", "feishu_doc", "e2", '{"action": "read"}', 9)
RESULT = FakePart("e3:0", "tool_result", "feishu_doc", "e3",
                  "\n".join(f"row {n}: the gross revenue of 2026" for n in range(4000)),
                  29_620)  # fmt: skip
ENVELOPE = FakePart("envelope", "envelope", "envelope", "wire", "x" * 412, 0)

FIRST = (SECTION, SAFETY, TOOL, file("AGENTS.md", AGENTS, 2010), MEMORY, USER, ENVELOPE)
SECOND = (*FIRST[:-1], CALL, RESULT, ENVELOPE)
EDITED = (SECTION, SAFETY, TOOL, file("AGENTS.md", AGENTS + "\nAnswer in one line.", 2048),
          MEMORY, USER, CALL, RESULT, ENVELOPE)  # fmt: skip


class Recorded(Struct, frozen=True):
    """One recorded call."""

    run: str
    number: int
    parts: tuple[FakePart, ...]
    cause: str = "turn"
    at: int = 0
    cached: int = 0
    measured: bool = True
    cost: float | None = None

    @property
    def id(self) -> str:
        return f"{self.run}/call-{self.number}"

    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    def row(self) -> dict[str, object]:
        began = NOW + self.at
        tokens = self.tokens()
        return {
            "id": self.id, "runId": self.run, "sessionKey": MAIN, "agentId": "main",
            "seq": self.number, "cause": self.cause, "parentId": None,
            "model": "openai/gpt-5-mini", "provider": "openai", "api": "openai-completions",
            "attempt": 1, "startedMs": began, "firstTokenMs": began + 420,
            "endedMs": began + 3200, "queueMs": 0, "parkedMs": 0, "status": "ok", "error": None,
            "finish": "stop", "bodyBytes": sum(len(part.text.encode()) for part in self.parts),
            "bodyHash": "h", "estimatedTokens": tokens, "tokens": tokens,
            "basis": "measured" if self.measured else "estimated",
            "usage": {"input": tokens - self.cached, "output": 180, "cacheRead": self.cached,
                      "cacheWrite": 0} if self.measured else None,
            "cost": self.cost,
        }  # fmt: skip


RUN = "7f3a9c20-0000"
CALLS = [
    Recorded("22b1aa10-0000", 1, FIRST, at=-86_400_000, cached=0),
    Recorded(RUN, 1, FIRST, at=0, cached=15_000, cost=0.0042),
    Recorded(RUN, 2, SECOND, "tool_round", at=4_000, cached=15_310, cost=0.0132),
]


class FakeTrace:
    """Serves `calls`, oldest first, to a FakeClient."""

    def __init__(self, *calls: Recorded, enabled: bool = True) -> None:
        self.calls = list(calls or CALLS)
        self.enabled = enabled
        self.stopped = ""

    def install(self, client: FakeClient) -> FakeClient:
        client.answers |= {
            "trace.list": self.list, "trace.run": self.run, "trace.calls": self.listed,
            "trace.call": self.call, "trace.part": self.part, "trace.compare": self.compare,
            "trace.search": self.search,
        }  # fmt: skip
        return client

    def _one(self, call_id: object) -> Recorded:
        for call in self.calls:
            if call.id == call_id:
                return call
        raise unknown(f"No call {call_id} is in the trace.")

    def list(self, params: Json) -> Json:
        runs = list(dict.fromkeys(call.run for call in reversed(self.calls)))
        why = {"why": self.stopped} if self.stopped else {}
        return {"enabled": self.enabled, **why, "runs": [self._run_row(run) for run in runs],
                "next": None}  # fmt: skip

    def _run_row(self, run: str) -> dict[str, object]:
        calls = [call for call in self.calls if call.run == run]
        first, last = calls[0], calls[-1]
        usage = {"input": sum(c.tokens() - c.cached for c in calls), "output": 180 * len(calls),
                 "cacheRead": sum(c.cached for c in calls), "cacheWrite": 0}  # fmt: skip
        return {
            "id": run, "sessionKey": MAIN, "agentId": "main", "parentId": None, "answeredBy": None,
            "source": "console", "cause": "message", "title": "what's in the [b]report[/]?",
            "model": "openai/gpt-5-mini", "status": "done", "stopReason": "stop",
            "startedMs": NOW + first.at, "endedMs": NOW + last.at + 3200, "queueMs": 120,
            "parkedMs": 0, "calls": len(calls), "tools": len(calls) - 1,
            "bodyBytes": 120_000, "estimatedTokens": last.tokens(), "usage": usage,
            "cost": last.cost, "error": None,
        }  # fmt: skip

    def run(self, params: Json) -> Json:
        run = str(params["runId"])
        calls = [call for call in self.calls if call.run == run]
        if not calls:
            raise unknown(f"No run {run} is in the trace.")
        row = {**self._run_row(run), "endedMs": NOW + 64_000}
        return {"run": row, "calls": [call.row() for call in calls], "tools": [],
                "events": run_events(run)}  # fmt: skip

    def listed(self, params: Json) -> Json:
        rows = [
            call.row() for call in reversed(self.calls)
            if "runId" not in params or call.run == params["runId"]
        ]  # fmt: skip
        start = int(str(params.get("before", 0)))
        limit = int(str(params.get("limit", 100)))
        end = start + limit
        return {"calls": rows[start:end], "next": end if end < len(rows) else None}

    def call(self, params: Json) -> Json:
        if not self.calls:
            raise unknown("No call of this session is in the trace.")
        call = self._one(params["callId"]) if "callId" in params else self.calls[-1]
        place = self.calls.index(call)
        before = self.calls[place - 1] if place else None
        had = before.parts if before is not None else ()
        broke = next(
            (n for n, (a, b) in enumerate(zip(had, call.parts, strict=False))
             if a != b and a.kind != "envelope"), None
        )  # fmt: skip
        rows, at = [], 0
        for n, part in enumerate(call.parts):
            cached = bool(had) and n < len(had) and (broke is None or n < broke)
            rows.append(part.row(at, cached=cached and part in had, new=part not in had))
            at += len(part.text.encode())
        return {
            "call": call.row(), "previous": before.row() if before is not None else None,
            "answer": {"text": "done", "reasoning": "", "toolCalls": []},
            "bytes": at, "tokens": call.tokens(), "envelopeBytes": 412, "cacheBreak": broke,
            "parts": rows, "growth": growth(had, call.parts) if before is not None else [],
        }  # fmt: skip

    def part(self, params: Json) -> Json:
        call = self._one(params["callId"])
        part = next((p for p in call.parts if p.id == params["partId"]), None)
        if part is None:
            raise unknown("No such part.")
        start, limit = int(str(params["offset"])), int(str(params["limit"]))
        end = start + limit
        return {
            "id": part.id, "kind": part.kind, "name": part.name, "source": part.source,
            "bytes": len(part.text.encode()), "tokens": part.tokens, "hash": "h",
            "redacted": "[hidden]" in part.text, "chars": len(part.text), "offset": start,
            "text": part.text[start:end], "next": end if end < len(part.text) else None,
        }  # fmt: skip

    def compare(self, params: Json) -> Json:
        a, b = self._one(params["a"]), self._one(params["b"])
        old = {part.id: part for part in a.parts}
        pairs: list[dict[str, object]] = []
        for part in b.parts:
            was = old.pop(part.id, None)
            row: dict[str, object] = {
                "a": was.row(0, cached=False, new=False) if was else None,
                "b": part.row(0, cached=False, new=False),
                "state": "added" if was is None else "same" if was == part else "changed",
            }
            if row["state"] == "changed" and was is not None:
                new = part.text.removeprefix(was.text).strip("\n")
                row["lines"] = [{"op": "@", "text": "3 lines"}, {"op": " ", "text": "Be brief."},
                                {"op": "+", "text": new}]  # fmt: skip
            pairs.append(row)
        pairs += [{"state": "removed", "a": part.row(0, cached=False, new=False), "b": None}
                  for part in old.values()]  # fmt: skip
        return {"a": a.row(), "b": b.row(), "parts": pairs, "bytes": 21,
                "tokens": b.tokens() - a.tokens(),
                "firstChange": 0, "truncated": False}  # fmt: skip

    def search(self, params: Json) -> Json:
        call, words = self._one(params["callId"]), str(params["text"]).lower()
        found: list[dict[str, object]] = []
        for n, part in enumerate(call.parts):
            at = part.text.lower().find(words)
            while at >= 0:
                end = at + len(words)
                found.append({
                    "partId": part.id, "index": n, "offset": at,
                    "before": part.text[max(0, at - 60) : at], "match": part.text[at:end],
                    "after": part.text[end : end + 60],
                })  # fmt: skip
                at = part.text.lower().find(words, end)
        return {"matches": found[: int(str(params["limit"]))], "total": len(found), "parts": 1}


def growth(before: tuple[FakePart, ...], now: tuple[FakePart, ...]) -> list[dict[str, object]]:
    sums: dict[tuple[str, str, str], int] = {}
    for sign, parts in ((-1, before), (1, now)):
        for part in parts:
            key = (part.source, part.kind, part.name)
            sums[key] = sums.get(key, 0) + sign * part.tokens
    rows: list[dict[str, object]] = [
        {"source": source, "kind": kind, "label": name, "bytes": 4 * tokens, "tokens": tokens}
        for (source, kind, name), tokens in sums.items() if tokens
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -abs(int(str(row["tokens"]))))


def run_events(run: str) -> list[dict[str, object]]:
    """The story of the sketch, to its end, with a wait for the operator of a minute."""
    s = Script(run)
    story = s.disk_story()
    for event in story:
        data = event["data"]
        assert isinstance(data, dict)
        if event["kind"] == "call.started":
            data["callId"] = "c1"
    return [
        *story,
        s("tool.decided", 61_000, toolCallId="t3", approvalId="a1", decision="deny", by="console",
          reason="keep it"),
        s("tool.ended", toolCallId="t3", name="exec", status="error", text="denied: keep it",
          exitCode=None, durationMs=3, decision="deny"),
        s("call.started", callId="c3", cause="tool_round", model="m", parts=[], bytes=9900,
          tokens=2600, estimated=True),
        s("text", 900, callId="c3", delta="I keep it."),
        s("call.ended", callId="c3", stopReason="stop",
          usage={"input": 100, "output": 8, "cacheRead": 2500, "cacheWrite": 0, "total": 2608},
          ttftMs=210, durationMs=1000, error=None),
        s("run.ended", status="done", stopReason="stop", text="I keep it.", error=None,
          durationMs=64_000, usage={}),
    ]  # fmt: skip


def unknown(words: str) -> ClientError:
    return ClientError(ErrorShape("INVALID_REQUEST", words))
