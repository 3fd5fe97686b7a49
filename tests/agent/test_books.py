"""What a run's calls cost, and the budgets that they are held against before they are made."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec.structs import replace

from claw_engine.approvals.events import ApprovalRequested
from claw_engine.approvals.model import ApprovalKind, ApprovalRecord, Decision
from claw_engine.config.sections.budgets import Budget, BudgetsSettings
from claw_engine.config.settings import Settings
from claw_engine.messages import Usage
from claw_engine.models.base import Finished, ModelError, ModelErrorKind, TextDelta
from claw_engine.protocol.trace import TraceEvent, TraceKind
from claw_engine.runs import AbortReason
from claw_engine.usage import schema
from claw_engine.usage.records import Sums
from tests.agent.bench import MAIN, REF, Bench, FnTool, ScriptedModel, calls, says, with_queue
from tests.agent.conftest import MakeBench

END, STARTED, ENDED = TraceKind.RUN_ENDED, TraceKind.CALL_STARTED, TraceKind.CALL_ENDED
PRICED = replace(REF, cost={"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75})


def budgets(**scopes: Budget) -> Settings:
    return replace(with_queue("followup", debounce_ms=0), budgets=BudgetsSettings(**scopes))


async def ledger(b: Bench, by: schema.By = "cause") -> dict[str, Sums]:
    return await b.meter.ledger.read(lambda c: schema.grouped(c, by, 0, 1 << 60))


def without_usage(text: str) -> list[TextDelta | Finished]:
    return [TextDelta(text), Finished("stop")]


async def run(b: Bench, text: str = "hi", key: str = MAIN) -> TraceEvent:
    return await b.until(END, await b.send(text, key))


async def test_every_call_is_counted_with_its_cause_model_and_cost(bench: MakeBench) -> None:
    async def tool(args: object, ctx: object) -> object:
        from claw_engine.tools.base import ToolResult

        return ToolResult("done")

    model = ScriptedModel([calls(("work", "{}")), says("Well.")], PRICED)
    b = await bench(model, [FnTool("work", tool)])  # type: ignore[arg-type]
    await run(b)
    ends = [event.data for event in b.trace if event.kind is ENDED]
    cost = (100 * 3 + 5 * 15 + 20 * 0.3) / 1e6
    for data in ends:
        assert data["spent"] == {
            "input": 100, "output": 5, "cacheRead": 20, "cacheWrite": 0, "total": 105,
            "basis": "measured", "cost": pytest.approx(cost),
        }  # fmt: skip
    found = await ledger(b)
    assert {name: (s.calls, s.total, s.estimated) for name, s in found.items()} == {
        "turn": (1, 105, 0), "tool_round": (1, 105, 0),
    }  # fmt: skip
    assert found["turn"].cost == pytest.approx(cost)
    assert list(await ledger(b, "model")) == ["fake/one"]
    assert list(await ledger(b, "session")) == [MAIN]


async def test_a_provider_that_does_not_count_is_estimated_and_said_so(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([without_usage("word " * 400)], PRICED))
    await run(b)
    (started,) = [e.data for e in b.trace if e.kind is STARTED]
    (ended,) = [e.data for e in b.trace if e.kind is ENDED]
    spent = ended["spent"]
    assert isinstance(spent, dict)
    assert ended["usage"] is None
    assert spent["basis"] == "estimated"
    assert spent["input"] == started["tokens"]
    assert 350 < spent["output"] < 450
    assert (await ledger(b))["turn"].estimated == 1


async def test_a_price_that_is_not_configured_is_not_guessed(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("Well.")]))
    await run(b)
    sums = (await ledger(b))["turn"]
    assert (sums.cost, sums.unpriced) == (0.0, 1)


async def test_estimates_are_drawn_to_what_the_provider_counts(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([says("Well.", usage=Usage(1, 5, 0, 0, 6))]))
    await run(b)
    first = next(e.data for e in b.trace if e.kind is STARTED)
    raw = first["tokens"]
    assert isinstance(raw, int)
    assert first["ratio"] == 1.0
    b.agent.deps.models._model.scripts += [  # type: ignore[attr-defined]
        says("Well.", usage=Usage(raw * 13 // 10, 5, 0, 0, raw * 13 // 10 + 5)) for _ in range(12)
    ]
    for _ in range(12):
        await run(b)
    last = [e.data for e in b.trace if e.kind is STARTED][-1]
    assert 1.1 < last["ratio"] < 1.31  # type: ignore[operator]
    parts = last["parts"]
    assert isinstance(parts, list)
    assert abs(sum(row["tokens"] for row in parts) - last["tokens"]) <= len(parts)
    kept = json.loads(b.state.calibration_json.read_bytes())
    assert "fake/one" in kept


async def test_an_answer_that_is_stopped_half_way_is_counted(bench: MakeBench) -> None:
    never = asyncio.Event()
    b = await bench(ScriptedModel([[TextDelta("word " * 100), never]]))
    id_ = await b.send("hi")
    await b.until(TraceKind.TEXT, id_)
    b.runs.abort(id_, AbortReason.USER)
    await b.until(END, id_)
    await b.dispatcher.wait(id_)
    sums = (await ledger(b))["turn"]
    assert sums.estimated == 1
    assert 80 < sums.output < 120
    assert sums.input > 500


async def test_a_call_that_its_provider_refuses_costs_nothing(bench: MakeBench) -> None:
    b = await bench(ScriptedModel([[ModelError("No.", kind=ModelErrorKind.AUTH)]]))
    await run(b)
    assert await ledger(b) == {}
    ended = next(e.data for e in b.trace if e.kind is ENDED)
    assert ended["spent"] is None


# ── budgets ─────────────────────────────────────────────────────────────────────────────────────


async def test_stop_sends_nothing_and_says_how_to_go_on(bench: MakeBench) -> None:
    model = ScriptedModel([says("One."), says("Two.")])
    b = await bench(model, settings=budgets(day=Budget(tokens=50, action="stop")))
    end = await run(b)
    assert model.requests == []
    assert end.data["status"] == "failed"
    error = end.data["error"]
    assert isinstance(error, dict)
    assert "Today's budget is used up: 0 tokens of 50 tokens spent" in error["title"]
    assert "Nothing was sent" in error["title"]
    assert "claw config set claw.budgets.day.tokens" in error["hint"]
    assert "2026-12-01 00:00 UTC" in error["hint"]
    assert not [e for e in b.trace if e.kind is STARTED]
    # Raised, it goes on: a budget is that of this moment.
    b.settings = budgets(day=Budget(tokens=10**6, action="stop"))
    assert (await run(b)).data["text"] == "One."


async def test_a_budget_stops_between_the_rounds_of_a_run(bench: MakeBench) -> None:
    async def tool(args: object, ctx: object) -> object:
        from claw_engine.tools.base import ToolResult

        return ToolResult("done")

    model = ScriptedModel([
        [*calls(("work", "{}"))[:-2], *says("", usage=Usage(10_000, 5, 0, 0, 10_005))[-2:-1],
         Finished("toolUse")], says("never"),
    ])  # fmt: skip
    chosen = budgets(session=Budget(tokens=10_000, action="stop"))
    b = await bench(model, [FnTool("work", tool)], settings=chosen)  # type: ignore[arg-type]
    end = await run(b)
    assert len(model.requests) == 1
    assert end.data["status"] == "failed"
    assert "this session" in str(end.data["error"])


async def test_a_warning_is_a_notice_of_the_run(bench: MakeBench) -> None:
    b = await bench(
        ScriptedModel([says("One."), says("Two.")]),
        settings=budgets(day=Budget(tokens=50, action="warn")),
    )
    assert (await run(b)).data["text"] == "One."
    assert (await run(b)).data["text"] == "Two."
    notices = [e.data["text"] for e in b.trace if e.kind is TraceKind.NOTICE]
    assert len(notices) == 1
    assert "The budget of today is used up" in str(notices[0])


class Asked:
    """The operator's side of the broker."""

    def __init__(self, b: Bench) -> None:
        self._b = b
        self._subscription = b.bus.subscribe(ApprovalRequested.topic)

    async def next(self) -> ApprovalRecord:
        async with asyncio.timeout(10):
            async for event in self._subscription:
                if isinstance(event, ApprovalRequested):
                    return event.record
        raise AssertionError("the bus was closed")

    async def answer(self, decision: Decision) -> ApprovalRecord:
        record = await self.next()
        return await self._b.broker.resolve(record.id, decision, "op")


ASK = Budget(tokens=50, action="ask", step=400.0)


async def test_ask_parks_the_run_and_yes_reaches_to_the_next_step(bench: MakeBench) -> None:
    model = ScriptedModel([says("One."), says("Two.")])
    b = await bench(model, settings=budgets(day=ASK))
    asked = Asked(b)
    id_ = await b.send("hi")
    record = await asked.next()
    await b.until(TraceKind.RUN_STATE, id_, new="parked")
    lane = next(lane for lane in b.lanes.status() if lane.lane == "main")
    assert (lane.active, lane.parked) == (0, 1)
    assert record.ask.kind is ApprovalKind.BUDGET
    assert "today's budget, up to 20,050 tokens" in record.ask.command
    assert any("claw.budgets.day.tokens" in reason for reason in record.ask.reasons)
    assert model.requests == []
    await b.broker.resolve(record.id, Decision.ALLOW_ONCE, "op")
    assert (await b.until(END, id_)).data["text"] == "One."
    assert (await run(b)).data["text"] == "Two."  # within the step: nobody is asked again


@pytest.mark.parametrize("how", ["deny", "timeout"])
async def test_no_or_no_answer_ends_the_run(bench: MakeBench, how: str) -> None:
    model = ScriptedModel([says("One.")])
    b = await bench(model, settings=budgets(day=ASK))
    asked = Asked(b)
    id_ = await b.send("hi")
    record = await asked.next()
    await b.until(TraceKind.RUN_STATE, id_, new="parked")
    if how == "deny":
        await b.broker.resolve(record.id, Decision.DENY, "op")
    else:
        await b.clock.advance(b.broker.timeout_ms / 1000 + 1)
    end = await b.until(END, id_)
    assert end.data["status"] == "failed"
    assert ("op said no" if how == "deny" else "Nobody said yes (timeout)") in str(
        end.data["error"]
    )
    assert model.requests == []


async def test_two_sessions_at_once_are_one_question(bench: MakeBench) -> None:
    model = ScriptedModel([says("One."), says("Two.")])
    b = await bench(model, settings=budgets(day=ASK))
    asked = Asked(b)
    ids = [await b.send("hi", f"agent:main:s{n}") for n in range(2)]
    record = await asked.next()
    for id_ in ids:
        if b.runs.get(id_).state != "parked":  # type: ignore[union-attr]
            await b.until(TraceKind.RUN_STATE, id_, new="parked")
    assert len(b.broker.pending()) == 1
    await b.broker.resolve(record.id, Decision.ALLOW_ONCE, "op")
    for id_ in ids:
        result = await b.dispatcher.wait(id_)
        assert result is not None
        assert result.status == "done"


async def test_a_run_that_is_stopped_takes_its_question_with_it(bench: MakeBench) -> None:
    model = ScriptedModel([says("Two.")])
    b = await bench(model, settings=budgets(day=ASK))
    asked = Asked(b)
    first = await b.send("hi", "agent:main:a")
    await asked.next()
    second = await b.send("hi", "agent:main:b")
    await b.until(TraceKind.RUN_STATE, second, new="parked")
    b.runs.abort(first, AbortReason.USER)
    await b.dispatcher.wait(first)
    await asked.answer(Decision.ALLOW_ONCE)  # the second's own
    result = await b.dispatcher.wait(second)
    assert result is not None
    assert result.text == "Two."
