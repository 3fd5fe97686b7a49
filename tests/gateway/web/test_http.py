"""HTTP beside the WebSocket on one port: health, one tool call, OpenAI's shape (TP-01, SE-03)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from claw_engine.engine import Engine
from tests.gateway.replay import TOKEN, Device, player
from tests.support.engines import PLAIN_ENV

CONFIG: dict[str, Any] = {
    "gateway": {
        "auth": {"mode": "token", "token": TOKEN},
        "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
    },
}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def serving(state: Path, config: dict[str, Any]) -> AsyncIterator[Engine]:
    state.mkdir(parents=True, exist_ok=True)
    (state / "openclaw.json").write_text(json.dumps(config))
    env = {**PLAIN_ENV, "HOME": str(state)}
    async with Engine(state, mode="headless", env=env, listen=True, port=0, drain_s=0.2) as engine:
        await engine.listening.served()
        yield engine


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with serving(tmp_path / "s", CONFIG) as running:
        yield running


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx2.AsyncClient]:
    base = f"http://127.0.0.1:{engine.port}"
    async with httpx2.AsyncClient(base_url=base, timeout=20, trust_env=False) as client:
        yield client


async def test_what_needs_no_secret(http: httpx2.AsyncClient) -> None:
    front = await http.get("/")
    assert front.status_code == 200
    assert front.text.startswith("claw-tui gateway")
    assert TOKEN not in front.text
    assert front.headers["x-content-type-options"] == "nosniff"
    for path in ("/healthz", "/health"):
        assert (await http.get(path)).json() == {"ok": True, "status": "live"}
    for path in ("/readyz", "/ready"):
        assert (await http.get(path)).json() == {"ready": True}
    assert (await http.head("/healthz")).status_code == 200
    assert (await http.get("/nothing/here")).status_code == 404
    wrong = await http.get("/tools/invoke")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("path", ["/tools/invoke", "/v1/chat/completions"])
async def test_the_rest_needs_the_secret(
    http: httpx2.AsyncClient, engine: Engine, path: str
) -> None:
    for header in ("", "Bearer x", f"Basic {TOKEN}", "Bearer"):
        headers = {"Authorization": header} if header else {}
        answer = await http.post(path, json={}, headers=headers)
        assert answer.status_code == 401
        assert answer.json() == {"error": {"message": "Unauthorized", "type": "unauthorized"}}
    evil = {**BEARER, "Origin": "https://evil.org"}
    assert (await http.post(path, json={}, headers=evil)).status_code == 403
    for _ in range(9):
        await http.post(path, json={}, headers={"Authorization": "Bearer x"})
    locked = await http.post(path, json={}, headers=BEARER)
    assert locked.status_code == 429
    assert int(locked.headers["retry-after"]) > 0


async def test_se_03_a_devices_token_opens_no_http(
    http: httpx2.AsyncClient, engine: Engine
) -> None:
    assert engine.port is not None
    client = await player(engine.port, Device())
    hello = await client.hello(3, scopes=["operator.read"])
    await client.end()
    token = hello["payload"]["auth"]["deviceToken"]
    for tool in ("gateway", "cron", "nodes", "read"):
        answer = await http.post("/tools/invoke", json={"tool": tool},
                                 headers={"Authorization": f"Bearer {token}"})  # fmt: skip
        assert answer.status_code == 401


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{", 400, "invalid_request_error"),
        (b"[1]", 400, "invalid_request_error"),
        (b"{}", 400, "invalid_request_error"),
        (b"[" * 100_000, 400, "invalid_request_error"),
        (b'{"tool":"read","args":[]}', 400, "invalid_request_error"),
        (b'{"tool":"read","args":{}}', 400, "tool_error"),
        (b'{"tool":"no_such_tool"}', 404, "not_found"),
        (b'{"tool":"read","args":{"path":"missing.txt"}}', 400, "tool_error"),
        (b'{"tool":"' + b"x" * (3 << 20) + b'"}', 413, "invalid_request_error"),
    ],
)
async def test_tools_invoke_says_what_is_wrong(
    http: httpx2.AsyncClient, body: bytes, status: int, kind: str
) -> None:
    answer = await http.post("/tools/invoke", content=body, headers=BEARER)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == kind
    assert answer.json()["error"]["message"]


async def test_tools_invoke_calls_a_tool(http: httpx2.AsyncClient, engine: Engine) -> None:
    folder = engine.state.workspace("main")
    folder.mkdir(exist_ok=True)
    (folder / "hello.txt").write_text("hi there\n")
    call = {"tool": "read", "args": {"path": "hello.txt"}, "sessionKey": "main"}
    answer = await http.post("/tools/invoke", json=call, headers=BEARER)
    assert answer.status_code == 200
    assert answer.json()["ok"] is True
    assert "hi there" in answer.json()["result"]["content"][0]["text"]


async def test_tools_invoke_waits_for_the_operator_like_a_run(
    http: httpx2.AsyncClient, engine: Engine
) -> None:
    operator = engine.local_client(strict=True)
    await operator.connect()
    call = {"tool": "exec", "args": {"command": "echo said-yes"}}
    asking = asyncio.create_task(http.post("/tools/invoke", json=call, headers=BEARER))
    async for event in operator.events():
        if event.event == "exec.approval.requested":
            assert isinstance(event.payload, dict)
            decision = {"id": event.payload["id"], "decision": "allow-once"}
            await operator.call("exec.approval.resolve", decision)
            break
    answer = await asking
    await operator.close()
    assert answer.status_code == 200, answer.text
    assert "said-yes" in answer.json()["result"]["content"][0]["text"]


async def test_tp_01_what_the_policy_denies_is_denied_here_with_the_rule(tmp_path: Path) -> None:
    config = {**CONFIG, "tools": {"deny": ["exec"]},
              "agents": {"list": [{"id": "main", "default": True},
                                  {"id": "quiet", "tools": {"deny": ["write"]}}]}}  # fmt: skip
    async with serving(tmp_path / "s", config) as engine:
        base = f"http://127.0.0.1:{engine.port}"
        async with httpx2.AsyncClient(base_url=base, headers=BEARER, trust_env=False) as http:
            for tool, key, rule in (
                ("exec", "main", "global step, tools"),
                ("exec", "agent:main:subagent:x", "global step, tools"),
                ("exec", "agent:main:cron:job", "global step, tools"),
                ("write", "agent:quiet:main", "agents.list"),
                ("bash", "main", "global step, tools"),
            ):
                answer = await http.post("/tools/invoke", json={
                    "tool": tool, "sessionKey": key, "args": {"command": "x", "path": "x",
                                                              "content": "x"},
                })  # fmt: skip
                assert answer.status_code == 403, (tool, key, answer.text)
                assert rule in answer.json()["error"]["message"]


async def test_openais_own_sdk_talks_to_it(engine: Engine) -> None:
    openai = pytest.importorskip("openai")
    client = openai.AsyncOpenAI(
        api_key=TOKEN, base_url=f"http://127.0.0.1:{engine.port}/v1", max_retries=0
    )
    asked: dict[str, Any] = {"model": "openclaw:main", "user": "ann", "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
    ]}  # fmt: skip
    whole = await client.chat.completions.create(**asked)
    assert whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage.total_tokens >= 0
    stream = await client.chat.completions.create(
        **asked, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    await client.close()
    operator = engine.local_client(strict=True)
    await operator.connect()
    sessions = await operator.call("sessions.list")
    await operator.close()
    rows = sessions["sessions"]
    assert isinstance(rows, list)
    assert [row["key"] for row in rows] == ["agent:main:openai-user:ann"]


@pytest.mark.parametrize(
    "body",
    [
        {}, {"messages": []}, {"messages": "x"}, {"messages": [1]}, {"messages": [{"role": "x"}]},
        {"messages": [{"role": "system", "content": "only"}]}, {"model": 1, "messages": [{}]},
        {"messages": [{"role": "user", "content": "\0"}]},
    ],
)  # fmt: skip
async def test_completions_say_what_is_wrong(http: httpx2.AsyncClient, body: Any) -> None:
    answer = await http.post("/v1/chat/completions", json=body, headers=BEARER)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_every_fault_of_a_body_is_named_as_openai_does(http: httpx2.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "x"}, {"role": "x"}], "stream": "yes"}
    error = (await http.post("/v1/chat/completions", json=body, headers=BEARER)).json()["error"]
    assert (error["param"], error["code"]) == ("messages.1.role", None)
    assert "messages.1.role: " in error["message"] and "stream: " in error["message"]
    many = {"messages": [{"role": "x"}] * 8}
    error = (await http.post("/v1/chat/completions", json=many, headers=BEARER)).json()["error"]
    assert error["message"].endswith("3 more")
    call = {"tool": " ", "sessionKey": 1}
    error = (await http.post("/tools/invoke", json=call, headers=BEARER)).json()["error"]
    assert "tool: " in error["message"] and "sessionKey: " in error["message"]


async def test_who_hangs_up_stops_the_run(http: httpx2.AsyncClient, engine: Engine) -> None:
    body = {"stream": True, "messages": [{"role": "user", "content": "long: 2000 20"}],
            "model": "claw"}  # fmt: skip
    ended = asyncio.Event()
    subscription = engine.bus.subscribe("trace")

    async def follow() -> None:
        async for event in subscription:
            if getattr(event, "kind", "") == "run.ended":
                ended.set()

    following = asyncio.create_task(follow())
    async with http.stream("POST", "/v1/chat/completions", json=body, headers=BEARER) as answer:
        async for line in answer.aiter_lines():
            if "content" in line:
                break
    async with asyncio.timeout(15):
        await ended.wait()
    following.cancel()
    subscription.close()


async def test_completions_are_off_unless_configured(tmp_path: Path) -> None:
    async with serving(tmp_path / "s", {"gateway": {"auth": {"token": TOKEN}}}) as engine:
        url = f"http://127.0.0.1:{engine.port}/v1/chat/completions"
        async with httpx2.AsyncClient(trust_env=False) as http:
            answer = await http.post(url, json={}, headers=BEARER)
    assert answer.status_code == 404
    assert "chatCompletions.enabled" in answer.json()["error"]["message"]
