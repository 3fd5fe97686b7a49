"""A past run told again: any step can be gone to, and says what the whole run says."""

from __future__ import annotations

from claw_tui.store.blocks import BlockKind
from claw_tui.store.replay import LONGEST_GAP_MS, Replay, replay_from, run_from
from tests.tui.fake_trace import RUN, FakeTrace


def replay() -> Replay:
    return replay_from(FakeTrace().run({"runId": RUN}))


def picture(of: Replay) -> list[object]:
    """As words: blocks change in place."""
    return [repr((block.kind, block.text, block.call, block.run)) for block in of.talk.blocks]


def test_every_step_is_the_same_from_before_and_from_behind() -> None:
    forward, jumping = replay(), replay()
    seen = []
    for step in range(len(forward.events) + 1):
        forward.to(step)
        seen.append(picture(forward))
    for step in reversed(range(len(forward.events) + 1)):
        jumping.to(step)
        assert picture(jumping) == seen[step], step


def test_calls_are_lines_of_their_own_with_what_they_cost() -> None:
    whole = replay()
    whole.to(len(whole.events))
    calls = [block.call for block in whole.talk.blocks if block.kind is BlockKind.CALL]
    assert [(call.number, call.cause) for call in calls if call] == [
        (1, "turn"),
        (2, "tool_round"),
    ]
    last = calls[-1]
    assert last is not None and last.measured and last.tokens == 2600 and last.cached == 2500
    words = [block.text for block in whole.talk.blocks if block.kind is BlockKind.NOTICE]
    assert "waits for the operator: approval" in words


def test_a_long_wait_is_played_short() -> None:
    whole = replay()
    gaps = [b - a for a, b in zip(whole.times, whole.times[1:], strict=False)]
    assert max(gaps) == LONGEST_GAP_MS and whole.whole_ms < 61_000


def test_time_goes_by_in_any_portions() -> None:
    slow, fast = replay(), replay()
    while not slow.at_end:
        slow.advance(130)
    fast.advance(10**6)
    assert fast.at_end and fast.at_ms == fast.whole_ms
    assert picture(slow) == picture(fast)


def test_an_empty_answer_is_an_empty_run() -> None:
    empty = replay_from({})
    empty.to(5)
    assert not empty.advance(100) and empty.at_end and empty.whole_ms == 0
    assert run_from(None).duration_ms is None


def test_a_run_whose_engine_died_ends_as_interrupted() -> None:
    told = FakeTrace().run({"runId": RUN})
    kinds = [event["kind"] for event in told["events"]]
    decided = kinds.index("tool.decided")
    cut = {**told, "run": {**told["run"], "status": "interrupted", "endedMs": None}}
    whole = replay_from({**cut, "events": told["events"][: decided + 1]})
    whole.to(decided + 1)
    (tool,) = (block.tool for block in whole.talk.blocks if block.tool)
    assert tool.status == "running" and tool.decision
    whole.to(len(whole.events))
    (tool,) = (block.tool for block in whole.talk.blocks if block.tool)
    assert tool.status == "interrupted"
    assert "Interrupted" in whole.talk.blocks[-1].text
    started = told["events"][kinds.index("run.started")]
    again = replay_from({**cut, "events": [*told["events"][: decided + 1], started]})
    again.to(decided + 2)
    (tool,) = (block.tool for block in again.talk.blocks if block.tool)
    assert tool.status == "interrupted"
