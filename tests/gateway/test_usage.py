"""What was spent, end to end: a real engine, a fake provider that counts with a real tokenizer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from claw_engine.cli.__main__ import main
from claw_engine.cli.status import rows
from claw_engine.client.base import ClientError
from claw_engine.engine import Engine
from tests.cli.test_listing_verbs import Claw
from tests.cli.test_listing_verbs import claw as claw
from tests.support.engines import Operator, engine_on, transcript_of
from tests.support.fake_openai import FakeOpenAI
from tests.support.fit_tokens import texts
from tests.support.tokenizer import counting, prompt_tokens

COST = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}


def config(server: FakeOpenAI, **claw_section: object) -> dict[str, object]:
    provider = {
        "baseUrl": server.base_url, "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "one", "name": "one", "cost": COST}],
    }  # fmt: skip
    defaults = {"model": {"primary": "fake/one"}, "userTimezone": "Asia/Tokyo"}
    return {
        "models": {"providers": {"fake": provider}}, "agents": {"defaults": defaults},
        "claw": claw_section,
    }  # fmt: skip


@pytest_asyncio.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    async with FakeOpenAI(counting("Certainly. Here it is.")) as made:
        yield made


@pytest_asyncio.fixture
async def engine(tmp_path: Path, server: FakeOpenAI) -> AsyncIterator[Engine]:
    async with engine_on(tmp_path, config=config(server)) as made:
        yield made


@pytest_asyncio.fixture
async def operator(engine: Engine) -> AsyncIterator[Operator]:
    async with Operator(engine.local_client(strict=True)) as made:
        yield made


async def ask(operator: Operator, text: str, session: str = "main") -> Any:
    run = await operator.say(text, session)
    end = await operator.ended(run)
    return {"end": end, "started": await operator.trace(run, "call.started")}


async def test_a_requests_estimate_is_within_a_tenth_of_what_the_server_counts(
    operator: Operator, engine: Engine, server: FakeOpenAI
) -> None:
    """Must hold 3, with prompt and tools and the message: the very requests that were sent."""
    for name in ("english", "code", "json", "chinese"):
        engine._rooms.meter.calibration._ratios.clear()  # an estimate, not what was learnt
        text = texts("checking")[name]
        found = await ask(operator, text * (6_000 // len(text)), name)
        counted = prompt_tokens(server.requests[-1])
        assert found["started"]["ratio"] == 1.0
        assert found["started"]["tokens"] == pytest.approx(counted, rel=0.1), name


async def test_the_next_estimates_are_drawn_to_the_count(
    operator: Operator, server: FakeOpenAI
) -> None:
    await ask(operator, "hello")
    second = await ask(operator, "and again")
    counted = prompt_tokens(server.requests[-1])
    assert second["started"]["tokens"] == pytest.approx(counted, rel=0.03)
    status = await operator.client.call("usage.status", {})
    assert list(status["calibration"]) == ["fake/one"]
    assert (status["providers"], status["budgets"]) == ([], [])


async def test_the_methods_agree_with_the_provider_and_each_other(
    operator: Operator, server: FakeOpenAI, tmp_path: Path
) -> None:
    for key in ("main", "main", "work"):
        await ask(operator, "hello", key)
    counts = [prompt_tokens(request) for request in server.requests]
    out = [6] * 3
    call = operator.client.call
    cost = await call("usage.cost", {})
    assert cost["days"] == 30 == len(cost["daily"])
    totals = cost["totals"]
    assert (totals["input"], totals["output"], totals["calls"]) == (sum(counts), sum(out), 3)
    assert totals["totalTokens"] == sum(counts) + sum(out)
    assert totals["totalCost"] == pytest.approx((3 * sum(counts) + 15 * sum(out)) / 1e6)
    assert (totals["missingCostEntries"], totals["basis"]) == (0, "measured")
    assert cost["daily"][-1]["totalTokens"] == totals["totalTokens"]
    for by, names in (
        ("session", {"agent:main:main", "agent:main:work"}), ("model", {"fake/one"}),
        ("cause", {"turn"}), ("agent", {"main"}),
    ):  # fmt: skip
        found = await call("usage.totals", {"by": by, "days": 1})
        assert {row["name"] for row in found["rows"]} == names
        assert found["totals"] == totals
        assert sum(row["calls"] for row in found["rows"]) == 3
    sessions = await call("sessions.usage", {"mode": "specific", "utcOffset": "UTC+9"})
    by_key = {row["key"]: row for row in sessions["sessions"]}
    main = by_key["agent:main:main"]
    assert main["usage"]["input"] == sum(counts[:2])
    assert main["modelProvider"] == "fake"
    assert [row["model"] for row in main["usage"]["modelUsage"]] == ["fake/one"]
    assert sessions["totals"] == totals
    assert sessions["aggregates"]["byProvider"][0]["provider"] == "fake"
    one = await call("sessions.usage", {"key": "work"})
    assert [row["key"] for row in one["sessions"]] == ["agent:main:work"]
    course = await call("sessions.usage.timeseries", {"key": "main"})
    assert [p["input"] for p in course["points"]] == counts[:2]
    assert course["points"][-1]["cumulativeTokens"] == sum(counts[:2]) + 12
    stored = [line["message"] for line in transcript_of(tmp_path) if "message" in line]
    told = [m["usage"]["cost"]["total"] for m in stored if m["role"] == "assistant"]
    assert told == pytest.approx([(3 * count + 15 * 6) / 1e6 for count in counts[:2]])
    logs = await call("sessions.usage.logs", {"key": "main", "limit": 2})
    assert [(row["role"], row.get("tokens")) for row in logs["logs"]] == [
        ("user", None), ("assistant", counts[1] + 6),
    ]  # fmt: skip
    listed = await call("sessions.list", {})
    row = next(row for row in listed["sessions"] if row["key"] == "agent:main:main")
    # OpenClaw's fields: the last call's input, the run's output.
    assert (row["inputTokens"], row["outputTokens"]) == (counts[1], 6)
    assert row["totalTokens"] == counts[1] + 6


REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("usage.cost", {"startDate": "2026-02-30"}, "is no day"),
    ("usage.cost", {"startDate": "2026-03-02", "endDate": "2026-03-01"}, "after the last"),
    ("usage.cost", {"startDate": "1999-01-01"}, "at most 1100 days"),
    ("usage.cost", {"utcOffset": "GMT"}, "utcOffset"),
    ("usage.totals", {"by": "colour"}, "by"),
    ("sessions.usage.timeseries", {"key": "nobody"}, "There is no session"),
    ("sessions.usage.logs", {"key": "nobody"}, "There is no session"),
]


async def test_what_cannot_be_asked_is_said(operator: Operator) -> None:
    for name, params, words in REFUSED:
        with pytest.raises(ClientError) as caught:
            await operator.client.call(name, params)
        assert words in str(caught.value)


async def test_the_usage_command(operator: Operator, server: FakeOpenAI) -> None:
    async def command(text: str) -> str:
        end = await operator.ended(await operator.say(text))
        return str(end["text"])

    assert "This session: nothing yet" in await command("/usage cost")
    assert "tokens and cost" in await command("/usage")
    run = await operator.say("hello")
    await operator.ended(run)
    notice = await operator.trace(run, "notice")
    counted = prompt_tokens(server.requests[-1])
    assert notice["text"].startswith(f"Usage: {counted:,} in / 6 out · est $0.0")
    assert "session agent" not in notice["text"]
    assert "the session" in await command("/usage")  # full
    run = await operator.say("hello")
    await operator.ended(run)
    assert (await operator.trace(run, "notice"))["text"].endswith("· session agent:main:main")
    assert await command("/usage") == "Usage line: off."
    run = await operator.say("hello")
    await operator.ended(run)
    assert not [f for f in operator.seen if f.event == "trace" and f.payload["runId"] == run
                and f.payload["kind"] == "notice"]  # fmt: skip
    said = await command("/usage cost")
    assert said.splitlines()[0].startswith("This session: ")
    assert "Last 30 days: " in said
    assert "Unrecognized usage mode" in await command("/usage loud")


async def test_the_verb(operator: Operator, claw: Claw, server: FakeOpenAI) -> None:
    code, out, _ = await claw("usage")
    assert (code, out.splitlines()[1]) == (0, "No call to a model was made.")
    await ask(operator, "hello", "work")
    counted = prompt_tokens(server.requests[-1])
    code, out, _ = await claw("usage", "--by", "session", "--days", "2")
    assert code == 0
    head, titles, row, total = out.splitlines()
    assert head.endswith("by session")
    assert titles.split() == ["session", "calls", "input", "cached", "output", "cost"]
    cost = (counted * 3 + 6 * 15) / 1e6
    assert row.split() == ["agent:main:work", "1", f"{counted:,}", "0", "6", f"${cost:.4f}"]
    assert total.split()[0] == "all"
    _, out, _ = await claw("usage", "--json", "--by", "cause")
    found = json.loads(out)
    assert found["rows"][0]["name"] == "turn"
    assert found["budgets"] == []
    with pytest.raises(SystemExit):
        await claw("usage", "--days", "0")


async def test_the_verb_shows_the_main_sessions_budget(
    tmp_path: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = {"session": {"tokens": 10**6}, "day": {"tokens": 10**7}}
    async with (
        engine_on(tmp_path, config=config(server, budgets=budget)) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):

        async def told(*args: str) -> list[str]:
            await asyncio.to_thread(main, ["usage", *args, "--state-dir", str(tmp_path)])
            return [row for row in capsys.readouterr().out.splitlines() if "budget" in row]

        assert [row.partition(":")[0] for row in await told()] == ["budget of the day"]
        await ask(operator, "hello")
        await ask(operator, "hello", "work")
        session, day = await told()
        assert session.startswith("budget of the session main: ")
        assert "claw.budgets.session.tokens" in session
        assert day.startswith("budget of the day: ")
        assert (await told("--session", "work"))[0].startswith("budget of the session work: ")


async def test_the_verb_says_that_a_rehearsal_is_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await operator.ended(await operator.say("think: hello"))
        await asyncio.to_thread(main, ["usage", "--state-dir", str(tmp_path)])
        out = capsys.readouterr().out
    assert "calls of the rehearsal model (rehearsal/stage) cost nothing" in out
    assert "No call to a model was made" not in out


async def test_a_budget_is_seen_and_asks_through_the_queue(
    tmp_path: Path, server: FakeOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = {"day": {"tokens": 500, "action": "ask", "step": 40}}
    async with (
        engine_on(tmp_path, config=config(server, budgets=budget)) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        run = await operator.say("hello")
        record = await operator.request(run)
        assert record["request"]["kind"] == "budget"
        assert "up to 20,500 tokens" in record["request"]["command"]
        assert server.requests == []
        assert record["request"]["always"]["patterns"] == []
        with pytest.raises(ClientError, match=r"claw\.budgets\.day\.tokens"):
            await operator.decide(record, "allow-always")
        await operator.decide(record, "allow-once")
        assert (await operator.ended(run))["status"] == "done"
        status = await operator.client.call("usage.status", {"sessionKey": "main"})
        (budget_now,) = status["budgets"]
        assert (budget_now["scope"], budget_now["limit"]) == ("day", 500)
        assert budget_now["spent"] == prompt_tokens(server.requests[-1]) + 6
        assert budget_now["granted"] == 20_000
        whole = await operator.client.call("status", {})
        assert [row["scope"] for row in whole["budgets"]] == ["day"]
        found = dict(rows(whole, 0))
        assert found["budget"] == f"day: {budget_now['text']}, then ask"
        answer = await operator.ended(await operator.say("/status"))
        assert "Budget of the day: " in answer["text"]


async def test_it_counts_with_the_trace_switched_off_and_outlives_the_engine(
    tmp_path: Path, server: FakeOpenAI
) -> None:
    chosen = config(server, trace={"enabled": False})
    for number in (1, 2):
        async with (
            engine_on(tmp_path, config=chosen) as engine,
            Operator(engine.local_client(strict=True)) as operator,
        ):
            await ask(operator, "hello")
            found = await operator.client.call("usage.cost", {})
            assert found["totals"]["calls"] == number
            if number == 2:
                last = await operator.trace(
                    next(f.payload["runId"] for f in operator.seen if f.event == "trace"),
                    "call.started",
                )
                assert last["ratio"] != 1.0  # learnt by the engine before
    assert not (tmp_path / "trace").exists()
