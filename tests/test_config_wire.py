"""`config.*` and `logs.tail` of a real engine: hashes, hidden secrets, refusals, what waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from claw_engine.client.base import Client, ClientError
from claw_engine.engine import Engine
from claw_engine.protocol.names import Scope
from tests.support.engines import engine_on

SECRET = "sk-test-0123456789abcdef"
TEXT = """{
  // the box in the cellar
  models: { providers: { box: { baseUrl: "http://127.0.0.1:9/v1", apiKey: "SECRET",
    models: [{ id: "m" }, { id: "n" }] } } },
  agents: { defaults: { model: "box/m" } },
}
""".replace("SECRET", SECRET)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    (tmp_path / "openclaw.json").write_text(TEXT)
    async with engine_on(tmp_path) as made:
        yield made


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    made = engine.local_client(strict=True)
    await made.connect()
    yield made
    await made.close()


async def refused(client: Client, method: str, params: dict[str, object]) -> Any:
    with pytest.raises(ClientError) as caught:
        await client.call(method, params)
    return caught.value.shape


async def board(client: Client) -> dict[str, Any]:
    status: Any = await client.call("status")
    return {notice["code"]: notice for notice in status["notices"]}


async def test_a_whole_file_goes_round_without_its_secrets(client: Client, tmp_path: Path) -> None:
    found: Any = await client.call("config.get")
    assert SECRET not in json.dumps(found)
    assert "// the box" in found["raw"] and found["valid"] is True
    raw = found["raw"].replace('"box/m"', '"box/n"')
    answer: Any = await client.call("config.set", {"raw": raw, "baseHash": found["hash"]})
    assert answer["ok"] is True and SECRET not in json.dumps(answer)
    assert answer["config"]["agents"]["defaults"]["model"] == "box/n"
    assert (tmp_path / "openclaw.json").read_text() == TEXT.replace("box/m", "box/n")
    assert (await client.call("config.get"))["hash"] != found["hash"]


async def test_what_is_refused_changes_nothing(client: Client, tmp_path: Path) -> None:
    """CF-03: a refused write."""
    found: Any = await client.call("config.get")
    good = (tmp_path / "openclaw.json.last-good").read_bytes()
    base = {"baseHash": found["hash"]}
    shape = await refused(client, "config.set", {"raw": "{}"})
    assert (shape.code, shape.message.split(";")[0]) == (
        "INVALID_REQUEST", "config base hash required",
    )  # fmt: skip
    shape = await refused(client, "config.set", {"raw": "{}", "baseHash": "0" * 64})
    assert shape.message.startswith("config changed since last load")
    for raw, words in (
        ('{\n  agents: { defaults: { timeoutSeconds: "much" } } }', ":2:"),
        ("{ agents: ", ":1:11: expected a value"),
        ('{ gateway: { auth: { token: "__OPENCLAW_REDACTED__" } } }', "holds nothing"),
    ):
        shape = await refused(client, "config.set", {"raw": raw, **base})
        assert shape.message.startswith("invalid config")
        assert words in json.dumps(shape.details["issues"])
    shape = await refused(client, "config.set", {"raw": "{}", **base, "more": 1})
    assert "unexpected property 'more'" in shape.message
    assert (tmp_path / "openclaw.json").read_text() == TEXT
    assert (tmp_path / "openclaw.json.last-good").read_bytes() == good


async def test_a_patch_keeps_comments_and_is_limited(client: Client, tmp_path: Path) -> None:
    for number in range(3):
        found: Any = await client.call("config.get")
        patch = {"session": {"idleMinutes": number + 1}}
        params = {"raw": json.dumps(patch), "baseHash": found["hash"]}
        answer: Any = await client.call("config.patch", params)
        assert answer["config"]["session"]["idleMinutes"] == number + 1
    # An engine of a console has nobody to start the next one, and says so.
    assert answer["restart"]["ok"] is False and "console" in answer["restart"]["reason"]
    text = (tmp_path / "openclaw.json").read_text()
    assert "// the box in the cellar" in text and SECRET in text and '"idleMinutes": 3' in text
    for method in ("config.patch", "config.apply"):
        shape = await refused(client, method, {"raw": "{}"})
        assert (shape.code, shape.retryable) == ("UNAVAILABLE", True)
        assert 0 < shape.retry_after_ms <= 60_000
        assert shape.details == {"method": method, "limit": "3 per 60s"}


async def test_what_waits_for_a_restart_is_told_and_not_in_force(
    engine: Engine, client: Client
) -> None:
    found: Any = await client.call("config.get")
    raw = json.dumps({"gateway": {"bind": "lan"}, "cron": {"maxConcurrentRuns": 5}})
    await client.call("config.set", {"raw": raw, "baseHash": found["hash"]})
    assert engine.settings().gateway.bind == "loopback"
    assert {lane.lane: lane.width for lane in engine.lanes.status()}["cron"] == 5
    waits = (await board(client))["config-waits"]
    assert "gateway.bind" in waits["title"] and "cron" not in waits["title"]
    probes: Any = (await client.call("doctor.probes"))["probes"]
    settings = next(row for row in probes if row["name"] == "settings")
    assert (settings["room"], settings["health"]) == ("gateway", "warn")


async def test_only_an_administrator_writes_and_the_schema_tells_secrets(engine: Engine) -> None:
    reader = engine.local_client(strict=True, scopes=(Scope.READ, Scope.WRITE))
    await reader.connect()
    for method in ("config.set", "config.patch", "config.apply", "config.schema"):
        assert (await refused(reader, method, {"raw": "{}"})).message.startswith("missing scope")
    await reader.close()
    admin = engine.local_client(strict=True)
    await admin.connect()
    schema: Any = await admin.call("config.schema")
    assert schema["schema"]["properties"].keys() >= {"gateway", "agents", "models"}
    assert schema["uiHints"]["gateway.auth.token"] == {"sensitive": True}
    one: Any = await admin.call("config.schema.lookup", {"path": "cron.maxConcurrentRuns"})
    assert one["reloadKind"] == "hot"
    await admin.close()


async def test_the_log_is_told_piece_by_piece(client: Client) -> None:
    first: Any = {"lines": []}
    async with asyncio.timeout(20):  # lines are written by a thread of their own
        while not any("engine ready" in line for line in first["lines"]):
            first = await client.call("logs.tail", {"limit": 5000})
    assert not first["reset"]
    await client.call("lanes.pause")
    rest: Any = await client.call("logs.tail", {"cursor": first["cursor"]})
    assert rest["cursor"] >= first["cursor"] and not rest["truncated"]
    far: Any = await client.call("logs.tail", {"cursor": 10**9, "limit": 1})
    assert far["reset"] is True and len(far["lines"]) == 1
    small: Any = await client.call("logs.tail", {"maxBytes": 300})
    assert small["truncated"] is True
    assert all(line.startswith("{") for line in small["lines"])


async def test_the_log_is_paged_backwards_and_only_the_log(client: Client) -> None:
    last: Any = {"lines": []}
    async with asyncio.timeout(20):
        while not any("engine ready" in line for line in last["lines"]):
            last = await client.call("logs.tail", {"limit": 5000})
    few: Any = await client.call("logs.tail", {"limit": 1})
    place = {"file": few["file"], "end": few["start"]}
    page: Any = await client.call("logs.page", place)
    assert page["end"] == few["start"] and page["newest"] is True
    assert (page["lines"] + few["lines"])[: len(last["lines"])] == last["lines"]
    for wrong in (
        {"file": "openclaw.json", "end": 9},
        {"file": few["file"]},
        {"file": few["file"], "end": 1, "start": 1},
    ):
        with pytest.raises(ClientError) as error:
            await client.call("logs.page", wrong)
        assert error.value.shape.code == "INVALID_REQUEST"
