"""Every recorded conversation of tests/golden/captures, replayed (tests/golden/manifest.toml)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import tomllib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from claw_engine.engine import Engine
from tests.gateway.replay import (
    TOKEN,
    Device,
    Frame,
    Player,
    keys_of,
    marks_of,
    missing,
    player,
    recording,
)
from tests.support.engines import PLAIN_ENV
from tests.support.fake_openai import (
    Cut,
    FakeOpenAI,
    Hold,
    Received,
    Reply,
    answer,
    error,
    reasoning,
    text,
    tool_call,
)

GOLDEN = Path(__file__).parents[1] / "golden"
MANIFEST = tomllib.loads((GOLDEN / "manifest.toml").read_text())
ROWS: Mapping[str, Mapping[str, str]] = MANIFEST["captures"]
ABSENT: Mapping[str, str] = MANIFEST["absent"]
ABSENT_IN_RUNS: Mapping[str, str] = {**ABSENT, **MANIFEST["absent_in_run_events"]}
ABSENT_IN_ENTRIES: Mapping[str, str] = {**ABSENT, **MANIFEST["absent_in_entries"]}
MORE: Mapping[str, str] = MANIFEST["more"]

_ERROR_IS_THEIRS = ("provider_error", "sessions.patch")
"""Scenarios in which the words of an error may be ours: its code and place are compared."""


BEFORE: Mapping[str, Mapping[str, str]] = {
    "2026.2.26/sessions.patch": {},
    "2026.2.26/sessions.reset": {
        "thinkingLevel": "high", "verboseLevel": "on", "responseUsage": "tokens",
    },
    "2026.9.6/sessions.patch": {},
    "2026.9.6/approval.agent_allow-once": {},
}  # fmt: skip
"""Recordings of a session in which somebody had spoken before, and the settings it had."""


def of_mode(*modes: str) -> list[str]:
    return [name for name, row in ROWS.items() if row["mode"] in modes]


class Provider:
    """Answers as the model of the recordings did, by the marks in the newest message."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def __call__(self, request: Received) -> Reply:
        messages: list[Any] = request.json["messages"]  # type: ignore[assignment]  # JSON
        last = messages[-1]
        said = json.dumps([m for m in messages if m["role"] == "user"][-1:])
        if last["role"] == "tool":
            return answer(*text(f"Done. Tool said: {_words(last['content'])[:20]}"))
        match = re.search(r"#(\w+)(?::(\w+))?", said)
        match match and match[1]:
            case "exec":
                command = str(match and match[2]).replace("_", " ").replace(" s", " -s")
                arguments = json.dumps({"command": command})
                return answer(*text("Running it."), *tool_call(0, "call_1", "exec", arguments),
                              finish="tool_calls")  # fmt: skip
            case "read":
                arguments = json.dumps({"path": "AGENTS.md"})
                return answer(*tool_call(0, "call_1", "read", arguments),
                              finish="tool_calls")  # fmt: skip
            case "slow":
                return answer(*text("tok0", " tok1", " tok2"), Hold(self.go_on), *text(" tok3"))
            case "think":
                return answer(*reasoning("Let me", " see."), *text("The answer", " is", " 42."))
            case _:
                pass
        if "#401" in said:
            return error(401, "Incorrect API key provided: fake")
        if "#500" in said:
            return error(500, "boom")
        if "#cut" in said:
            return Reply([*text("partial tex"), Cut()])
        return answer(*text("Hello", " from", " the", " fake", " model."))


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(p.get("text", "")) for p in content) if isinstance(content, list) else ""


@contextlib.asynccontextmanager
async def gateway(state: Path, *, asks: bool = False) -> AsyncIterator[tuple[Engine, Provider]]:
    provider = Provider()
    async with FakeOpenAI(provider) as server:
        model = {"reasoning": False, "contextWindow": 200_000}
        state.mkdir(parents=True, exist_ok=True)
        (state / "openclaw.json").write_text(json.dumps({
            "gateway": {"auth": {"mode": "token", "token": TOKEN}},
            "models": {"providers": {"fake": {
                "baseUrl": server.base_url, "apiKey": "fake", "api": "openai-completions",
                "models": [{"id": "fake-1", "name": "Fake", **model},
                           {"id": "fake-think", "name": "Fake", **model, "reasoning": True}],
            }}},
            "agents": {"defaults": {"model": "fake/fake-1"}},
            "tools": {"exec": {} if asks else {"security": "full", "ask": "off"}},
        }))  # fmt: skip
        env = {**PLAIN_ENV, "HOME": str(state), "OPENCLAW_GATEWAY_PORT": "0"}
        engine = Engine(state, mode="headless", env=env, listen=True, drain_s=0.2)
        async with engine:
            await engine.listening.served()
            yield engine, provider


def the_port(engine: Engine) -> int:
    assert engine.port is not None
    return engine.port


def test_the_manifest_names_every_recording_and_few_differ() -> None:
    there = {str(p.relative_to(GOLDEN / "captures").with_suffix(""))
             for p in (GOLDEN / "captures").rglob("*.json")}  # fmt: skip
    assert set(ROWS) == there
    assert {row["mode"] for row in ROWS.values()} <= {"exact", "shape", "differs", "waiting"}
    for row in ROWS.values():
        assert row["mode"] in ("exact", "shape") or row["reason"]
    assert len(of_mode("differs")) <= 5


def frames_of(name: str) -> tuple[list[Frame], Frame]:
    whole = recording(GOLDEN / "captures" / f"{name}.json")
    frames: list[Frame] = whole["frames"]
    return frames, whole


async def replayed(name: str, state: Path) -> tuple[list[Frame], Frame, Player]:
    frames, whole = frames_of(name)
    async with gateway(state, asks="approval" in name) as (engine, provider):
        if name in BEFORE:
            await _before(the_port(engine), frames, BEFORE[name])
        client = await player(the_port(engine), Device())
        try:
            if not frames or frames[0]["frame"].get("event") != "connect.challenge":
                scopes = {"scopes": ["operator.read"]} if "read_only" in name else {}
                assert (await client.hello(4 if "2026.9.6" in name else 3, **scopes))["ok"]
            if "sent_bytes" in whole:
                await client.send({"raw": "x" * int(whole["sent_bytes"])})
                await client.until(lambda: client.close)
            last = frames[-1]["frame"] if frames else {}
            if "busy" in name or last.get("payload", {}).get("state") == "final":
                provider.go_on.set()
            await client.play(frames)
            runs = keys_of(frames)
            theirs = set(marks_of([e["frame"] for e in frames if e["dir"] == "recv"], runs))
            ended = {m for m in theirs if m[:2] in (("chat", "final"), ("chat", "error"))}
            await client.until(lambda: client.close or set(marks_of(client.got, runs)) >= ended)
            if frames and frames[0]["frame"].get("event") == "connect.challenge":
                await _health(client, frames)
        finally:
            provider.go_on.set()
            await client.end()
    return frames, whole, client


async def _before(port: int, frames: list[Frame], settings: Mapping[str, str]) -> None:
    """Let the recording's session be as it was."""
    sent = [e["frame"].get("params") or {} for e in frames if e["dir"] == "send"]
    key = next(p["key"] for p in sent if "key" in p)
    one = await player(port, Device())
    assert (await one.hello(3))["ok"]
    message = {"sessionKey": key, "message": "before", "idempotencyKey": "before"}
    assert (await one.call("chat.send", message))["ok"]
    assert (await one.call("agent.wait", {"runId": "before"}))["payload"]["status"] == "ok"
    if settings:
        assert (await one.call("sessions.patch", {"key": key, **settings}))["ok"]
    await one.end()


async def _health(client: Player, frames: list[Frame]) -> None:
    if any(e["frame"].get("event") == "health" for e in frames if isinstance(e["frame"], dict)):
        await client.until(lambda: any(f.get("event") == "health" for f in client.got))


def faults(name: str, frames: list[Frame], whole: Frame, client: Player) -> list[str]:
    """What ours lacks beside theirs."""
    theirs = [e["frame"] for e in frames if e["dir"] == "recv"]
    out = (
        _answers(name, theirs, client)
        + _ends(frames, whole, client)
        + _order(name, theirs, client, keys_of(frames))
    )
    seen: dict[object, Frame] = {}
    for frame in client.got:
        seen.setdefault(_kind(frame), frame)
    for frame in theirs:
        kind = _kind(frame)
        if kind[0] == "event" and kind in seen:
            lacking = ABSENT_IN_RUNS if frame["event"] == "agent" else ABSENT
            out += missing(frame["payload"], seen[kind]["payload"], lacking, f"{kind}")
            numbered = "seq" in seen[kind]
            if numbered != ("seq" in frame):
                out.append(f"{kind}: {'a' if numbered else 'no'} number, theirs otherwise")
    return list(dict.fromkeys(out))


def _kind(frame: Frame) -> tuple[object, ...]:
    payload = frame.get("payload")
    data = payload.get("data") if isinstance(payload, dict) else None
    if frame.get("type") != "event" or not isinstance(payload, dict):
        return ("other",)
    return ("event", frame["event"], payload.get("stream"), payload.get("state"),
            data.get("phase") if isinstance(data, dict) else payload.get("phase"))  # fmt: skip


def _answers(name: str, theirs: list[Frame], client: Player) -> list[str]:
    out = []
    counted: dict[str, int] = {}
    for frame in theirs:
        if frame.get("type") != "res":
            continue
        id_ = str(frame["id"])
        index = counted[id_] = counted.get(id_, -1) + 1
        found = client.responses(id_)
        if len(found) <= index:
            out.append(f"{id_}: no answer for {json.dumps(frame)[:120]}")
            continue
        ours = found[index]
        if ours["ok"] != frame["ok"]:
            out.append(f"{id_}: {json.dumps(ours)[:200]}, theirs {json.dumps(frame)[:200]}")
        elif frame["ok"]:
            payload = frame.get("payload")
            lacking = ABSENT_IN_ENTRIES if _has_rows(payload) else ABSENT
            out += missing(_bare(payload), _bare(ours.get("payload")), lacking, id_[:8])
        else:
            out += _error(name, frame["error"], ours["error"])
    return out


def _has_rows(payload: object) -> bool:
    return isinstance(payload, dict) and bool({"entry", "sessions"} & payload.keys())


def _bare(payload: object) -> object:
    """`config.get` without the operator's own file in it."""
    if not isinstance(payload, dict) or "parsed" not in payload:
        return payload
    return {**payload, "parsed": {}, "config": {}, "resolved": {}}


def _error(name: str, theirs: Frame, ours: Frame) -> list[str]:
    out = []
    if ours["code"] != theirs["code"]:
        out.append(f"code {ours['code']}, theirs {theirs['code']}: {theirs['message']}")
    if ours["message"] != theirs["message"] and not any(s in name for s in _ERROR_IS_THEIRS):
        out.append(f"says {ours['message']!r}, theirs {theirs['message']!r}")
    more, less = ours.get("details") or {}, theirs.get("details") or {}
    out += [f"details.{k}: {more.get(k)!r}, theirs {v!r}" for k, v in less.items()
            if more.get(k) != v]  # fmt: skip
    return out


def _ends(frames: list[Frame], whole: Frame, client: Player) -> list[str]:
    closes = [e["frame"] for e in frames if e["dir"] == "close" and e["frame"]["code"] != 1000]
    if isinstance(whole.get("closed"), list):
        closes.append({"code": whole["closed"][0], "reason": whole["closed"][1]})
    if not closes:
        return []
    ours = client.close
    if ours is None:
        return ["the connection stays open"]
    # A close frame holds 123 bytes; which of them a long reason keeps is not compared.
    code, reason = closes[0]["code"], closes[0]["reason"]
    said = ours[1] == reason or (len(reason) > 100 and reason.startswith(ours[1][:100]))
    return [] if ours[0] == code and said else [f"closed {ours}, theirs {closes[0]}"]


def _order(name: str, theirs: list[Frame], client: Player, runs: set[str]) -> list[str]:
    ours = [m for m in marks_of(client.got, runs) if " ".join(m).strip() not in MORE][1:]
    wanted = [m for m in marks_of(theirs, runs)
              if m[0] != "connect.challenge" and m[1:] != ("error", "")]  # fmt: skip
    if "2026.9.6" not in name:
        return [] if ours[: len(wanted)] == wanted else [f"order {ours}, theirs {wanted}"]
    # Protocol 4 tells more than we do; what we tell comes in its order. Where the last words
    # stand is as the pacing wills.
    if wanted and wanted[-2:-1] == [("agent", "assistant", "text")]:
        del wanted[-2]
    told = [m for m in wanted if m in set(ours)]
    rest = iter(ours)
    return [] if all(m in rest for m in told) else [f"order {ours}, theirs {told}"]


@pytest.mark.parametrize("name", of_mode("exact", "shape"))
async def test_a_recording_replayed(name: str, tmp_path: Path) -> None:
    frames, whole, client = await replayed(name, tmp_path / "s")
    assert faults(name, frames, whole, client) == []
    if ROWS[name]["mode"] == "exact":
        theirs = [e["frame"] for e in frames if e["dir"] == "recv"]
        sent = {f["id"]: f for f in client.got if f.get("type") == "res" and not f["ok"]}
        for frame in theirs:
            if frame.get("type") == "res" and not frame["ok"]:
                ours = sent[frame["id"]]["error"]
                assert {**ours, "details": None} == {**frame["error"], "details": None}


@pytest.mark.parametrize("name", of_mode("differs"))
async def test_what_differs_really_does(name: str, tmp_path: Path) -> None:
    """A row that agrees by now must say so."""
    with contextlib.suppress(TimeoutError):
        frames, whole, client = await replayed(name, tmp_path / "s")
        assert faults(name, frames, whole, client) != []
