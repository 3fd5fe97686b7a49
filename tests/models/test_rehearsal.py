from __future__ import annotations

import asyncio
import json

import pytest

from claw_engine.models.base import (
    Finished,
    ModelError,
    ModelErrorKind,
    ReasoningDelta,
    Turn,
    UsageSeen,
    decode_span,
)
from claw_engine.models.rehearsal import REHEARSAL, RehearsalModel
from claw_engine.models.rehearsal_script import AGAIN, NOT_AGAIN
from claw_engine.parts import Part, PartKind
from claw_engine.protocol.names import LOST_CALL, RESUME_NOTE
from tests.models.helpers import (
    ask,
    assistant,
    calls_of,
    part,
    request,
    result,
    text_of,
    tool,
    user,
)
from tests.support.fakes import FakeClock, settle

TOOLS = [tool("exec"), tool("read"), tool("write")]


def model() -> RehearsalModel:
    return RehearsalModel(FakeClock())


@pytest.mark.parametrize(
    ("typed", "calls"),
    [
        ("run: du -sh *", [("exec", {"command": "du -sh *"})]),
        ("run du -sh *", [("exec", {"command": "du -sh *"})]),
        ("RUN:   ls", [("exec", {"command": "ls"})]),
        ("run: printf 'a\nb'", [("exec", {"command": "printf 'a\nb'"})]),
        ("[Mon 2026-11-30 08:46 UTC] run: ls", [("exec", {"command": "ls"})]),
        ("tools: ls || pwd", [("exec", {"command": "ls"}), ("exec", {"command": "pwd"})]),
        ("read: /etc/hosts", [("read", {"path": "/etc/hosts"})]),
        ('read "my file.txt"', [("read", {"path": "my file.txt"})]),
        ("write: a.txt hello world", [("write", {"path": "a.txt", "content": "hello world"})]),
        ("write 'a b.txt' x\ny", [("write", {"path": "a b.txt", "content": "x\ny"})]),
    ],
)
async def test_verbs_that_call_tools(typed: str, calls: list[tuple[str, dict[str, str]]]) -> None:
    events = await ask(model(), request(user(typed), tools=TOOLS))
    assert [(name, json.loads(a)) for _, name, a in calls_of(events)] == calls
    assert text_of(events).startswith("I will ")
    assert events[-1] == Finished("toolUse")
    ids = [id_ for id_, _, _ in calls_of(events)]
    assert len(set(ids)) == len(ids)


async def test_after_the_result_it_says_what_really_came_out() -> None:
    turns = [user("run: ls"), assistant("I will", calls=[("c1", "exec", '{"command":"ls"}')])]
    said = text_of(await ask(model(), request(*turns, result("c1", "alpha\nbeta\n"), tools=TOOLS)))
    assert said == "`ls` gave 2 lines: alpha / beta"
    failed = result("c1", "Denied by the operator: not now", is_error=True)
    said = text_of(await ask(model(), request(*turns, failed, tools=TOOLS)))
    assert said == "`ls` did not succeed: Denied by the operator: not now"
    for nothing in ("", "(no output)"):
        said = text_of(await ask(model(), request(*turns, result("c1", nothing), tools=TOOLS)))
        assert said == "`ls` finished and printed nothing."


async def test_each_parallel_result_gets_a_sentence_in_call_order() -> None:
    calls = [("c1", "exec", '{"command":"ls"}'), ("c2", "read", '{"path":"a"}')]
    turns = [user("tools: x"), assistant(calls=calls), result("c2", "B"), result("c1", "A")]
    said = text_of(await ask(model(), request(*turns, tools=TOOLS)))
    assert said.splitlines() == ["`ls` gave 1 line: A", "read a gave 1 line: B"]


async def test_only_the_newest_user_turn_counts() -> None:
    turns = [
        user("run: old", "u1"),
        assistant(calls=[("c1", "exec", '{"command":"old"}')]),
        result("c1", "x"),
        assistant("said"),
        user("run: new", "u2"),
    ]
    events = await ask(model(), request(*turns, tools=TOOLS))
    assert [json.loads(a) for _, _, a in calls_of(events)] == [{"command": "new"}]


@pytest.mark.parametrize("typed", ["run: rm -rf /", "write: a b", "fail: 500", "long: 5"])
async def test_verbs_of_an_untrusted_origin_are_not_read(typed: str) -> None:
    events = await ask(model(), request(user(typed), tools=TOOLS, trusted=False))
    assert not calls_of(events)
    assert "only on messages typed at the console" in text_of(events)


async def test_text_that_the_person_did_not_type_is_not_read() -> None:
    turn = Turn("user", (part("run: evil", PartKind.FILE, "f"), part("hi", PartKind.USER, "u")))
    assert not calls_of(await ask(model(), request(turn, tools=TOOLS)))


async def test_an_older_message_merged_into_the_turn_is_not_acted_on() -> None:
    old = Part("e1:0", PartKind.USER, "e1", "[Mon 2026-11-30 08:46 UTC] run: old")
    new = Part("e2:0", PartKind.USER, "e2", "[Mon 2026-11-30 08:47 UTC] read: new")
    events = await ask(model(), request(Turn("user", (old, new)), tools=TOOLS))
    assert [(name, json.loads(a)) for _, name, a in calls_of(events)] == [("read", {"path": "new"})]


async def test_a_run_that_is_taken_up_again_goes_on_with_its_script() -> None:
    turn = user(f"[Mon 2026-11-30 08:46 UTC] {RESUME_NOTE}\n\nread: new")
    events = await ask(model(), request(turn, tools=TOOLS))
    assert text_of(events).startswith(AGAIN)
    assert [name for _, name, _ in calls_of(events)] == ["read"]


async def test_a_call_whose_outcome_nobody_knows_is_not_repeated() -> None:
    before = (
        user("run: make", "u1"),
        assistant(calls=[("c1", "exec", '{"command":"make"}')]),
        result("c1", LOST_CALL),
        assistant("Interrupted."),
    )
    again = user(f"{RESUME_NOTE}\n\nrun: make", "u2")
    events = await ask(model(), request(*before, again, tools=TOOLS))
    assert text_of(events) == NOT_AGAIN and not calls_of(events)
    # A later message of the same words is a wish of its own.
    events = await ask(model(), request(*before, user("run: make", "u3"), tools=TOOLS))
    assert [name for _, name, _ in calls_of(events)] == ["exec"]


@pytest.mark.parametrize("typed", ["what's eating my disk?", "", "run:", "fail: maybe", "running"])
async def test_anything_else_lists_the_verbs(typed: str) -> None:
    events = await ask(model(), request(user(typed), tools=TOOLS))
    said = text_of(events)
    assert "not an AI" in said
    for verb in ("run:", "tools:", "read:", "write:", "think:", "long:", "fail:"):
        assert verb in said
    assert events[-1] == Finished("stop")


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    events = await ask(model(), request(user("run: ls"), tools=[tool("read")]))
    assert not calls_of(events)
    assert "`exec`, which is not offered" in text_of(events)


async def test_think_reasons_then_speaks() -> None:
    events = await ask(model(), request(user("think: one two")))
    thought = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    assert thought == "one two"
    assert text_of(events)


async def test_long_keeps_its_rate() -> None:
    clock = FakeClock()
    stage = RehearsalModel(clock)
    req = request(user("long: 6 2"))
    seen = []

    async def consume() -> None:
        async for event in stage.stream(stage.encode(req), req):
            seen.append(event)  # noqa: PERF401  # watched while it grows

    task = asyncio.create_task(consume())
    await settle()
    assert len(seen) == 1
    await clock.advance(1.0)
    assert len(seen) == 3
    await clock.advance(2.0)
    await task
    assert len(text_of(seen).split()) == 6
    assert [e.usage.output for e in seen if isinstance(e, UsageSeen)] == [6]


async def test_long_without_pace_is_whole() -> None:
    events = await ask(model(), request(user("long: 5000 0")))
    assert len(text_of(events).split()) == 5000


@pytest.mark.parametrize(
    ("mode", "kind", "wait_ms"),
    [
        ("401", ModelErrorKind.AUTH, None),
        ("429", ModelErrorKind.RATE_LIMIT, 1000),
        ("500", ModelErrorKind.SERVER, None),
        ("cut", ModelErrorKind.CUT, None),
    ],
)
async def test_failures(mode: str, kind: ModelErrorKind, wait_ms: int | None) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(model(), request(user(f"fail: {mode}")))
    assert (caught.value.kind, caught.value.retry_after_ms) == (kind, wait_ms)


async def test_fail_slow_is_silent_and_then_given_up() -> None:
    clock = FakeClock()
    task = asyncio.create_task(ask(RehearsalModel(clock), request(user("fail slow"))))
    await clock.advance(29.0)
    assert not task.done()
    await clock.advance(1.0)
    with pytest.raises(ModelError) as caught:
        await task
    assert caught.value.kind is ModelErrorKind.TIMEOUT


async def test_it_is_deterministic_and_new_ids_follow_the_history() -> None:
    first = request(user("run: ls"), tools=TOOLS)
    assert await ask(model(), first) == await ask(model(), first)
    again = request(user("run: ls"), assistant("x"), user("run: ls", "u2"), tools=TOOLS)
    assert calls_of(await ask(model(), first))[0][0] != calls_of(await ask(model(), again))[0][0]


def test_its_request_is_encoded_like_any_other() -> None:
    req = request(user("run: ls"), model=REHEARSAL, tools=TOOLS)
    encoded = model().encode(req)
    assert json.loads(encoded.body)["model"] == "stage"
    found = {s.part_id: decode_span(encoded.body, s) for s in encoded.spans if s.part_id}
    assert found["u1"] == "run: ls"
    assert encoded.headers == {}


def test_it_is_not_an_ai() -> None:
    assert REHEARSAL.name == "rehearsal/stage"
    assert not REHEARSAL.is_ai
