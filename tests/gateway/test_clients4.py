"""What OpenClaw's terminal and web clients do at their start and in use, over the real port."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claw_engine.engine import Engine
from tests.gateway.replay import TOKEN, Device, Frame, Player, player
from tests.support.engines import PLAIN_ENV

TUI: Frame = {
    "client": {
        "id": "openclaw-tui", "displayName": "openclaw-tui", "version": "2026.9.6",
        "platform": "linux", "deviceFamily": "Linux", "mode": "ui", "instanceId": "i1",
    },
    "scopes": ["operator.admin", "operator.read", "operator.write", "operator.approvals"],
    "caps": ["agent-kind", "plugin-approvals", "task-suggestions", "tool-events"],
}  # fmt: skip

MAIN = "agent:main:main"


@asynccontextmanager
async def serving(state: Path, *agents: Frame) -> AsyncIterator[int]:
    state.mkdir()
    (state / "openclaw.json").write_text(json.dumps({
        "gateway": {"auth": {"mode": "token", "token": TOKEN}},
        "agents": {"list": agents},
    }))  # fmt: skip
    env = {**PLAIN_ENV, "HOME": str(state), "OPENCLAW_GATEWAY_PORT": "0"}
    async with Engine(state, mode="headless", env=env, listen=True, drain_s=0.2) as engine:
        await engine.listening.served()
        assert engine.port is not None
        yield engine.port


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    agent = {"id": "main", "name": "Molt", "identity": {"emoji": "x"}}
    async with serving(tmp_path / "s", agent) as number:
        yield number


async def client(port: int, protocol: int = 4, *, page: bool = False, **more: Any) -> Player:
    headers = {"Origin": f"http://127.0.0.1:{port}"} if page else {}
    one = await player(port, Device(), additional_headers=headers)
    hello = await one.hello(protocol, **{**TUI, **more})
    assert hello["ok"], hello
    return one


async def ended(one: Player, run_id: str) -> None:
    await one.until(lambda: any(
        f.get("event") == "chat" and f["payload"].get("runId") == run_id
        and f["payload"]["state"] in ("final", "error", "aborted") for f in one.got
    ))  # fmt: skip


def events(one: Player, name: str) -> list[Frame]:
    return [f["payload"] for f in one.got if f.get("event") == name]


async def said(one: Player, text: str, run_id: str, key: str = "main") -> None:
    answer = await one.call(
        "chat.send",
        {"sessionKey": key, "message": text, "deliver": False, "idempotencyKey": run_id},
    )
    assert answer["payload"] == {"runId": run_id, "status": "started"}
    await ended(one, run_id)


async def test_the_terminal_clients_start_in_order(port: int) -> None:
    one = await client(port)
    for method, params in (
        ("sessions.subscribe", {}),
        ("agents.list", {}),
        ("chat.history", {"sessionKey": "main", "limit": 200, "agentId": "main"}),
        ("sessions.describe", {"key": MAIN}),
        ("sessions.list", {"agentId": "main", "limit": 1}),
        ("commands.list", {"agentId": "main", "scope": "text", "includeArgs": False}),
    ):
        answer = await one.call(method, params)
        assert answer["ok"], (method, answer)
    agents = (await one.call("agents.list"))["payload"]
    (row,) = agents["agents"]
    assert (agents["defaultId"], agents["mainKey"], agents["scope"]) == (
        "main", "main", "per-sender",
    )  # fmt: skip
    assert (row["id"], row["name"], row["kind"]) == ("main", "Molt", "agent")
    assert row["model"]["primary"] == "rehearsal/stage"
    names = {c["name"]: c for c in (await one.call("commands.list"))["payload"]["commands"]}
    assert names["stop"]["textAliases"] == ["/stop"] and not names["stop"]["acceptsArgs"]
    assert names["think"]["textAliases"] == ["/think", "/thinking", "/t"]
    await one.end()


async def test_a_message_is_told_with_id_and_number_and_read_again_the_same(port: int) -> None:
    one = await client(port)
    await one.call("sessions.subscribe")
    await said(one, "hello", "run-1")
    await one.until(lambda: any(p.get("phase") == "end" for p in events(one, "sessions.changed")))
    live = events(one, "session.message")
    assert [p["message"]["role"] for p in live] == ["user", "assistant"]
    assert live[0]["message"]["content"] == "hello"
    assert live[0]["message"]["idempotencyKey"] == "run-1:user"
    assert [p["messageSeq"] for p in live] == [1, 2]
    assert live[0]["session"]["key"] == MAIN and live[0]["agentId"] == "main"
    history = (await one.call("chat.history", {"sessionKey": "main"}))["payload"]
    told = [(p["messageId"], p["messageSeq"]) for p in live]
    assert [(m["__openclaw"]["id"], m["__openclaw"]["seq"]) for m in history["messages"]] == told
    assert history["messages"][0]["content"] == "hello"
    assert history["messages"][0]["idempotencyKey"] == "run-1:user"
    assert history["sessionInfo"]["sessionId"] == history["sessionId"]
    assert history["defaults"]["model"] and not history["hasMore"]
    assert "inFlightRun" not in history
    words = [p.get("phase") or p.get("reason") for p in events(one, "sessions.changed")]
    assert "agent.run.started" in words and words.index("agent.run.started") < words.index("end")
    await one.end()


async def test_who_did_not_subscribe_is_not_told(port: int) -> None:
    one, other = await client(port), await client(port)
    assert (await other.call("sessions.messages.subscribe", {"key": "elsewhere"}))["payload"] == {
        "subscribed": True, "key": "agent:main:elsewhere",
    }  # fmt: skip
    three = await client(port, 3, client={**TUI["client"], "id": "gateway-client"})
    await one.call("sessions.subscribe")
    await said(one, "hello", "run-1")
    await one.call("sessions.unsubscribe")
    await other.call("sessions.messages.subscribe", {"key": "main"})
    await other.call("sessions.messages.unsubscribe", {"key": "elsewhere"})
    before = len(events(one, "session.message"))
    await said(other, "again", "run-2")
    assert [p["message"]["role"] for p in events(other, "session.message")] == [
        "user", "assistant",
    ]  # fmt: skip
    assert events(other, "sessions.changed") == []
    assert len(events(one, "session.message")) == before == 2
    assert events(three, "session.message") == []
    await three.until(lambda: events(three, "sessions.changed"))
    assert "keys" in events(three, "sessions.changed")[0]
    for each in (one, other, three):
        await each.end()


async def test_protocol_3_reads_blocks_without_usage(port: int) -> None:
    three = await client(port, 3, client={**TUI["client"], "id": "gateway-client"})
    await said(three, "hello", "run-1")
    history = (await three.call("chat.history", {"sessionKey": "main"}))["payload"]
    user, assistant = history["messages"]
    assert user["content"] == [{"type": "text", "text": "hello"}]
    assert "usage" not in assistant and "__claw" not in assistant
    assert set(history) == {"sessionKey", "sessionId", "messages", "thinkingLevel"}
    await three.end()


async def test_a_history_is_read_in_pages(port: int) -> None:
    one = await client(port)
    for number in range(3):
        await said(one, f"m{number}", f"run-{number}")
    newest = (await one.call("chat.history", {"sessionKey": "main", "limit": 2}))["payload"]
    assert newest["hasMore"] and newest["nextOffset"] == 2
    assert newest["messages"][0]["content"] == "m2"
    older = (await one.call(
        "chat.history", {"sessionKey": "main", "limit": 4, "offset": 2}
    ))["payload"]  # fmt: skip
    assert [m["__openclaw"]["seq"] for m in older["messages"]] == [1, 2, 3, 4]
    assert not older["hasMore"]
    small = (await one.call("chat.history", {"sessionKey": "main", "maxBytes": 1024}))["payload"]
    assert 0 < len(small["messages"]) < 6 and small["hasMore"]
    await one.end()


CONTROL_UI = (
    ("sessions.list", {
        "includeGlobal": True, "includeUnknown": True, "configuredAgentsOnly": True, "limit": 200,
        "includeDerivedTitles": True, "includeLastMessage": True, "ownerFirst": True,
        "agentId": "main",
    }),
    ("agents.list", {}),
    ("chat.startup", {"sessionKey": "main", "limit": 80, "maxBytes": 262_144}),
    ("models.list", {"view": "configured", "sessionKey": "main", "agentId": "main"}),
    ("agent.identity.get", {"agentId": "main"}),
    ("chat.metadata", {"agentId": "main", "sessionKey": "main"}),
    ("tools.effective", {"sessionKey": "main", "agentId": "main"}),
    ("system-presence", {}),
    ("chat.history", {"sessionKey": "main", "inputRunIds": ["run-1"], "limit": 1000}),
    ("diagnostics.lanes", {}),
)  # fmt: skip


async def test_the_web_clients_calls_are_answered(port: int) -> None:
    one = await client(port)
    await said(one, "hello", "run-1")
    answers = {}
    for method, params in CONTROL_UI:
        answer = await one.call(method, params)
        assert answer["ok"], (method, answer)
        answers[method] = answer["payload"]
    assert answers["chat.startup"]["messages"][0]["content"] == "hello"
    (row,) = answers["sessions.list"]["sessions"]
    assert row["key"] == MAIN and row["derivedTitle"] and row["kind"] == "direct"
    assert answers["models.list"]["models"][0]["available"] is True
    assert answers["agent.identity.get"] == {"agentId": "main", "name": "Molt", "emoji": "x"}
    assert answers["chat.metadata"]["commands"] and answers["chat.metadata"]["models"]
    tools = {t["id"] for g in answers["tools.effective"]["groups"] for t in g["tools"]}
    assert {"read", "exec"} <= tools
    lanes = {lane["lane"]: lane for lane in answers["diagnostics.lanes"]["lanes"]}
    assert lanes["main"]["maxConcurrent"] == 4
    await one.end()


async def test_a_list_is_filtered_and_read_in_pages(port: int) -> None:
    one = await client(port)
    for key in ("a", "b", "agent:main:subagent:x", "agent:main:cron:job:run:1", "global"):
        await one.call("sessions.create", {"key": key})
    await one.call("sessions.patch", {"key": "b", "label": "Bee", "archived": True})

    async def keys(**params: Any) -> list[str]:
        payload = (await one.call("sessions.list", params))["payload"]
        assert payload["count"] == len(payload["sessions"])
        return sorted(row["key"].removeprefix("agent:main:") for row in payload["sessions"])

    assert await keys() == ["a", "b", "subagent:x"]
    assert await keys(includeGlobal=True) == ["a", "b", "global", "subagent:x"]
    assert await keys(excludeSubagents=True) == ["a", "b"]
    assert await keys(search="bee") == ["b"] and await keys(label="Bee") == ["b"]
    assert await keys(archived=True) == ["b"]
    assert await keys(archived=False, excludeSubagents=True) == ["a"]
    assert await keys(activeOnly=True) == await keys(projectId="p") == await keys(agentId="x") == []
    pages = [(await one.call("sessions.list", {"limit": 2, "offset": at}))["payload"]
             for at in (0, 2)]  # fmt: skip
    assert [(p["count"], p["totalCount"], p["nextOffset"], p["hasMore"]) for p in pages] == [
        (2, 3, 2, True), (1, 3, None, False),
    ]  # fmt: skip
    assert len({row["key"] for p in pages for row in p["sessions"]}) == 3
    previews = await one.call("sessions.preview", {"keys": ["a", "nowhere"]})
    assert [p["status"] for p in previews["payload"]["previews"]] == ["empty", "missing"]
    await one.end()


EDITS = (
    # method, params, ok, what is in the answer
    ("sessions.patch", {"key": "main", "label": "Mine"}, {"ok": True, "key": MAIN}),
    ("sessions.patch", {"key": "main", "permissionMode": "read-only"}, {"ok": True}),
    ("sessions.patch", {"key": "main", "pinned": True}, {"ok": True}),
    ("sessions.patch", {"key": "main", "permissionMode": "full"}, "wider than the engine's"),
    ("sessions.patch", {"key": "main", "permissionMode": "x"}, "invalid permissionMode"),
    ("sessions.patch", {"key": "main", "execAsk": "off"}, "execSecurity/execAsk are retired"),
    ("sessions.patch", {"key": "main", "thinkingLevel": "bogus"},
     "invalid thinkingLevel (use off|minimal|low|medium|high)"),
    ("sessions.resolve", {"label": "Mine"}, {"ok": True, "key": MAIN, "agentId": "main"}),
    ("sessions.resolve", {"key": "main"}, {"ok": True, "key": MAIN}),
    ("sessions.resolve", {"label": "Nobody's"}, "No session found with label: Nobody's"),
    ("sessions.resolve", {"label": "Nobody's", "allowMissing": True}, {"ok": False}),
    ("sessions.resolve", {}, "one of key, sessionId or label"),
    ("sessions.compact", {"key": "main"}, "Nothing here makes a summary"),
    ("sessions.compact", {"key": "main", "maxLines": 1}, {"compacted": True, "kept": 1}),
    ("sessions.compact", {"key": "nowhere", "maxLines": 1},
     {"compacted": False, "reason": "no sessionId"}),
    ("sessions.abort", {"key": "main"}, {"ok": True, "status": "no-active-run"}),
    ("sessions.abort", {}, "needs a key or a runId"),
    ("chat.inject", {"sessionKey": "main", "message": "noted", "label": "cron"}, {"ok": True}),
    ("sessions.create", {"key": "fresh", "label": "Fresh"}, {"key": "agent:main:fresh"}),
    ("sessions.delete", {"key": "fresh"}, {"deleted": True}),
    ("sessions.delete", {"key": "fresh"}, {"deleted": False, "archived": []}),
    ("sessions.delete", {"key": "main", "archivedOnly": True}, "is not archived"),
    ("sessions.reset", {"key": "main", "expectedSessionId": "other"}, "changed"),
    ("sessions.reset", {"key": "main", "reason": "new"}, {"ok": True, "key": MAIN}),
    ("chat.send", {"sessionKey": "main", "message": "x", "idempotencyKey": "k",
                   "attachments": [{}]}, "attachments are not taken"),
    ("models.list", {"preparedOnly": True, "refresh": True}, "exclude each other"),
    ("models.list", {"provider": "nobody"}, {"models": []}),
    ("tools.effective", {"sessionKey": "nowhere"}, 'unknown session key "nowhere"'),
    ("agent.identity.get", {"agentId": "nobody"}, 'unknown agent id "nobody"'),
)  # fmt: skip


async def test_sessions_are_changed_in_both_protocols_words(port: int) -> None:
    one = await client(port)
    await one.call("sessions.subscribe")
    await said(one, "hello", "run-1")
    for method, params, expected in EDITS:
        answer = await one.call(method, params)
        if isinstance(expected, str):
            assert not answer["ok"] and expected in answer["error"]["message"], answer
        else:
            assert answer["ok"], (method, params, answer)
            assert answer["payload"].items() >= expected.items(), (method, answer)
    await one.until(lambda: any(
        p.get("reason") == "new" for p in events(one, "sessions.changed")
    ))  # fmt: skip
    (final,) = [p for p in events(one, "chat") if str(p["runId"]).startswith("inject-")]
    assert final["message"]["content"][0]["text"] == "[cron]\n\nnoted"
    await one.end()


async def test_a_session_can_be_stricter_than_the_engine(port: int) -> None:
    one = await client(port)
    await one.call("sessions.patch", {"key": "strict", "permissionMode": "read-only"})
    await said(one, "write: note.txt hello", "run-1", "strict")
    history = (await one.call("chat.history", {"sessionKey": "strict"}))["payload"]
    results = [m for m in history["messages"] if m["role"] == "toolResult"]
    assert results and all("permission mode look" in json.dumps(m) for m in results), history
    await one.end()


async def test_a_tools_row_says_what_it_is_about(port: int) -> None:
    one = await client(port)
    await said(one, "read: USER.md", "run-1")
    data = [p["data"] for p in events(one, "agent") if p["stream"] in ("item", "tool")]
    told = [(d["phase"], d.get("title"), d.get("meta")) for d in data if d["phase"] != "update"]
    assert told == [
        ("start", "Read USER.md", "USER.md"), ("start", None, None),
        ("result", None, "USER.md"), ("end", "Read USER.md", "USER.md"),
    ]  # fmt: skip
    await one.end()


async def test_files_of_an_agent_are_read_and_written_but_no_others(port: int) -> None:
    one = await client(port)
    listed = (await one.call("agents.files.list", {"agentId": "main"}))["payload"]
    assert "AGENTS.md" in {file["name"] for file in listed["files"]}
    put = {"agentId": "main", "name": "USER.md", "content": "likes tea"}
    assert (await one.call("agents.files.set", put))["payload"]["file"]["content"] == "likes tea"
    got = (await one.call("agents.files.get", {"agentId": "main", "name": "USER.md"}))["payload"]
    assert got["file"]["content"] == "likes tea" and not got["file"]["missing"]
    bad = await one.call("agents.files.get", {"agentId": "main", "name": "../secret"})
    assert 'unsupported file "../secret"' in bad["error"]["message"]
    link = Path(listed["workspace"]) / "MEMORY.md"
    link.symlink_to("/etc/passwd")
    for method, more in (("get", {}), ("set", {"content": "x"})):
        answer = await one.call(
            f"agents.files.{method}", {"agentId": "main", "name": "MEMORY.md", **more}
        )
        assert "is a link" in answer["error"]["message"]
    await one.end()


async def test_status_and_health_name_the_default_agent(tmp_path: Path) -> None:
    agents = ({"id": "side"}, {"id": "home", "default": True})
    async with serving(tmp_path / "s", *agents) as port:
        one = await player(port, Device())
        old = {**TUI["client"], "id": "gateway-client"}
        hello = await one.hello(3, **{**TUI, "client": old})
        defaults = hello["payload"]["snapshot"]["sessionDefaults"]
        assert (defaults["defaultAgentId"], defaults["mainSessionKey"]) == (
            "home", "agent:home:main",
        )  # fmt: skip
        await said(one, "hello", "run-1")
        accepted = await one.call("agent", {"message": "hi", "agentId": "side",
                                            "idempotencyKey": "run-2"})  # fmt: skip
        assert accepted["payload"]["status"] == "accepted"
        await ended(one, "run-2")
        status = (await one.call("status"))["payload"]
        assert status["heartbeat"]["defaultAgentId"] == "home"
        assert {row["agentId"]: row["count"] for row in status["sessions"]["byAgent"]} == {
            "home": 1, "side": 1,
        }  # fmt: skip
        newest = status["sessions"]["recent"][0]
        assert newest["key"] == "agent:side:main" and newest["percentUsed"] >= 0
        assert newest["flags"] == [] and newest["age"] >= 0
        health = (await one.call("health"))["payload"]
        assert health["defaultAgentId"] == "home"
        assert [a["agentId"] for a in health["agents"] if a["isDefault"]] == ["home"]
        web = await client(port, client={**TUI["client"], "id": "webchat", "mode": "webchat"},
                           page=True)  # fmt: skip
        refused = await web.call("sessions.patch", {"key": "main", "label": "x"})
        assert "webchat clients cannot patch" in refused["error"]["message"]
        for each in (one, web):
            await each.end()
