"""A request's numbers: which part made it grow, what the bar shows, which call it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_tui.store.requests import (
    CallInfo,
    bar_groups,
    comparison_from,
    matches_from,
    request_from,
    shares,
)
from tests.tui.fake_trace import CALLS, EDITED, RUN, FakeTrace, Recorded


def shown(trace: FakeTrace, call_id: str) -> object:
    return request_from(trace.call({"callId": call_id}))


def test_the_part_that_made_a_call_grow_is_named() -> None:
    request = request_from(FakeTrace().call({}))
    assert request.grown == 29_629
    assert request.culprit is not None
    part = request.parts[request.culprit]
    assert (part.kind, part.name, request.more(part)) == ("tool_result", "feishu_doc", 29_620)
    assert request.cached == (15_310, True) and request.cache_break is None


def test_the_first_call_has_no_culprit() -> None:
    request = request_from(FakeTrace().call({"callId": CALLS[0].id}))
    assert request.previous is None and request.culprit is None and request.grown == 0


def test_an_edited_file_says_by_how_much_and_where_the_cache_broke() -> None:
    trace = FakeTrace(*CALLS, Recorded(RUN, 3, EDITED, at=9_000, measured=False))
    request = request_from(trace.call({}))
    assert request.cache_break is not None
    broken = request.parts[request.cache_break]
    assert broken.name == "AGENTS.md" and broken.new and request.more(broken) == 38
    assert request.grown == 38 and not request.call.measured
    assert request.cached[1] is False, "the provider has not said it"


@pytest.mark.parametrize(
    ("call_id", "seq", "number"),
    [("r/call-2", 7, 2), ("r/c11", 0, 11), ("r/call-3@2", 1, 3), ("r/first", 4, 4), ("", 1, 1)],
)
def test_which_call_of_its_run_it_is(call_id: str, seq: int, number: int) -> None:
    assert CallInfo(call_id, seq=seq).number == number


def test_the_bar_weighs_bytes_where_no_tokens_are_known() -> None:
    request = request_from(FakeTrace().call({}))
    assert [name for name, _ in bar_groups(request.parts)] == [
        "system", "tools", "files", "talk", "results",
    ]  # fmt: skip
    raw = FakeTrace().call({})
    rows = raw["parts"]
    assert isinstance(rows, list)
    bare = request_from({**raw, "parts": [{**row, "tokens": 0} for row in rows]})
    assert sum(weight for _, weight in bar_groups(bare.parts)) == bare.call.body_bytes


@given(st.lists(st.integers(0, 10**9), max_size=12), st.integers(0, 300))
def test_shares_fill_the_bar_and_forget_nothing_there_is_room_for(
    weights: list[int], cells: int
) -> None:
    out = shares(weights, cells)
    assert len(out) == len(weights) and all(part >= 0 for part in out)
    if any(weights) and cells:
        assert sum(out) == cells
    if cells >= len(weights):
        assert all(part for part, weight in zip(out, weights, strict=True) if weight and cells)


def test_what_a_foreign_mind_sends_breaks_nothing() -> None:
    odd: dict[str, object] = {"parts": [None, 3, {"id": 5}], "growth": "x", "call": [],
                              "cacheBreak": "no", "previous": 3}  # fmt: skip
    request = request_from(odd)
    assert len(request.parts) == 1 and request.previous is None and request.culprit is None
    assert comparison_from({"parts": [{"a": None, "b": None}, {"state": "same", "a": {}}]}).pairs
    assert matches_from({"matches": [{}, 7]})[0].offset == 0
