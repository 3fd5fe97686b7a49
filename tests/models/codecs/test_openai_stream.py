from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from claw_engine.messages import Usage
from claw_engine.models.base import (
    Finished,
    ModelError,
    ModelErrorKind,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from claw_engine.models.codecs.openai_stream import ChatStreamDecoder
from tests.models.helpers import calls_of, ref, text_of
from tests.support.fake_openai import delta, reasoning, text, tool_call, usage


def decode(*chunks: Any, end: bool = True) -> list[ModelEvent]:
    numbers = itertools.count(1)
    decoder = ChatStreamDecoder(ref(), lambda: f"made-{next(numbers)}")
    events: list[ModelEvent] = []
    for chunk in chunks:
        events += decoder.feed(chunk if isinstance(chunk, str) else json.dumps(chunk))
    return events + decoder.finish() if end else events


def usage_of(events: list[ModelEvent]) -> Usage | None:
    return next((e.usage for e in reversed(events) if isinstance(e, UsageSeen)), None)


def reasoning_of(events: list[ModelEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, ReasoningDelta))


def test_pr04_chunks_without_choices() -> None:
    """PR-04: the stream of the case."""
    events = decode(
        {"choices": [], "prompt_filter_results": []},
        delta(role="assistant"),
        delta(content="He"),
        {"choices": None},
        {"id": "x"},
        delta("stop", content="llo"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
        "[DONE]",
    )
    assert text_of(events) == "Hello"
    assert usage_of(events) == Usage(input=7, output=2, total=9)
    assert events[-1] == Finished("stop")


def test_pr04_usage_in_the_content_chunk_or_never() -> None:
    """PR-04: usage in the content chunk, or never."""
    chunk = {
        **delta("stop", content="Hello"),
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    }
    assert usage_of(decode(chunk)) == Usage(input=7, output=2, total=9)
    assert usage_of(decode(*text("Hello"), delta("stop"))) is None


def test_usage_repeated_in_every_chunk_is_told_when_it_changes() -> None:
    same = {"prompt_tokens": 7, "completion_tokens": 1}
    events = decode(
        {**delta(content="a"), "usage": same},
        {**delta(content="b"), "usage": same},
        {**delta("stop"), "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    )
    assert [e.usage.output for e in events if isinstance(e, UsageSeen)] == [1, 2]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {"prompt_tokens": 100, "completion_tokens": 5,
             "prompt_tokens_details": {"cached_tokens": 60}},
            Usage(input=40, output=5, cache_read=60, total=105),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105,
             "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
            Usage(input=36, output=5, cache_read=64, total=105),
        ),
        ({"prompt_tokens": 3, "completion_tokens": None, "prompt_tokens_details": None},
         Usage(input=3, total=3)),
    ],
)  # fmt: skip
def test_cached_tokens_are_counted_apart(raw: dict[str, object], expected: Usage) -> None:
    assert usage_of(decode({**delta("stop"), "usage": raw})) == expected


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_fields(name: str) -> None:
    events = decode(*reasoning("Let me ", "see.", name=name), *text("Done."), delta("stop"))
    assert (reasoning_of(events), text_of(events)) == ("Let me see.", "Done.")


def test_reasoning_sent_under_two_names_counts_once() -> None:
    events = decode(delta(reasoning_content="hm", reasoning="hm"), delta("stop"))
    assert reasoning_of(events) == "hm"


def test_parallel_tool_calls_by_index() -> None:
    first = tool_call(0, "c1", "exec", '{"command":', '"ls"}')
    second = tool_call(1, "c2", "read", '{"path":', '"a"}')
    interleaved = [chunk for pair in zip(first, second, strict=True) for chunk in pair]
    events = decode(*text("I look."), *interleaved, delta("tool_calls"))
    assert calls_of(events) == [
        ("c1", "exec", '{"command":"ls"}'),
        ("c2", "read", '{"path":"a"}'),
    ]
    assert events[-1] == Finished("toolUse")


def call(**fields: object) -> Any:
    return delta(tool_calls=[fields])


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(
            [call(id="a", function={"name": "exec", "arguments": "{"}),
             call(function={"arguments": "}"}),
             call(id="b", function={"name": "read", "arguments": "{}"})],
            [("a", "exec", "{}"), ("b", "read", "{}")],
            id="no index",
        ),
        pytest.param(
            [call(index=0, id="a", function={"name": "exec", "arguments": "{"}),
             call(index=0, id="a", function={"name": "exec", "arguments": "}"})],
            [("a", "exec", "{}")],
            id="id and name repeated in each delta",
        ),
        pytest.param(
            [call(index=0, id="a", function={"name": "exec", "arguments": "{}"}),
             call(index=0, id="b", function={"name": "read", "arguments": "{}"})],
            [("a", "exec", "{}"), ("b", "read", "{}")],
            id="every call at index 0",
        ),
        pytest.param(
            [call(index=0, id="a", function={"name": "exec", "arguments": ""}),
             call(index=0, id="z9", function={"name": None, "arguments": "{}"})],
            [("a", "exec", "{}")],
            id="a new id in each delta of one call",
        ),
        pytest.param(
            [call(function={"name": "exec", "arguments": {"command": "ls"}}),
             call(function={"name": "read", "arguments": "{}"})],
            [("made-1", "exec", '{"command": "ls"}'), ("made-2", "read", "{}")],
            id="no index, no id, arguments as an object",
        ),
        pytest.param(
            [call(index=3, id="a", function={"arguments": "{"}),
             call(index=3, function={"name": "exec", "arguments": "}"})],
            [("a", "exec", "{}")],
            id="arguments before the name",
        ),
        pytest.param(
            [delta(function_call={"name": "exec", "arguments": "{"}),
             delta(function_call={"arguments": "}"})],
            [("made-1", "exec", "{}")],
            id="legacy function_call",
        ),
        pytest.param([call(index=0, function=None)], [("made-1", "", "")], id="no name at all"),
    ],
)  # fmt: skip
def test_tool_call_deltas_of_odd_providers(
    chunks: list[Any], expected: list[tuple[str, str, str]]
) -> None:
    assert calls_of(decode(*chunks, delta("tool_calls"))) == expected


@pytest.mark.parametrize(
    ("finish", "with_calls", "expected"),
    [
        ("stop", False, "stop"),
        ("stop", True, "toolUse"),
        ("tool_calls", False, "stop"),
        ("length", True, "length"),
        ("max_tokens", False, "length"),
        ("eos", False, "stop"),
    ],
)
def test_finish_reasons(finish: str, with_calls: bool, expected: str) -> None:
    calls = tool_call(0, "c", "exec", "{}") if with_calls else []
    assert decode(*calls, delta(finish))[-1] == Finished(expected)  # type: ignore[arg-type]  # table


@pytest.mark.parametrize(
    ("finish", "kind"),
    [
        ("content_filter", ModelErrorKind.BAD_REQUEST),
        ("insufficient_system_resource", ModelErrorKind.OVERLOADED),
        ("error", ModelErrorKind.SERVER),
    ],
)
def test_finish_reasons_that_are_failures(finish: str, kind: ModelErrorKind) -> None:
    with pytest.raises(ModelError) as caught:
        decode(*text("Half"), delta(finish))
    assert caught.value.kind is kind


def test_a_stream_without_any_end_is_cut() -> None:
    with pytest.raises(ModelError) as caught:
        decode(*text("Half an"))
    assert caught.value.kind is ModelErrorKind.CUT
    assert caught.value.retryable


def test_done_alone_ends_an_answer() -> None:
    assert decode(*text("x"), "[DONE]")[-1] == Finished("stop")


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ({"error": {"message": "slow down", "code": 429}}, ModelErrorKind.RATE_LIMIT),
        ({"error": {"message": "x", "type": "overloaded_error"}}, ModelErrorKind.OVERLOADED),
        ({"error": {"message": "m", "code": "context_length_exceeded"}},
         ModelErrorKind.CONTEXT_OVERFLOW),
        ({"object": "error", "message": "boom", "code": 500}, ModelErrorKind.SERVER),
        ({"error": "boom"}, ModelErrorKind.SERVER),
    ],
)  # fmt: skip
def test_errors_inside_the_stream(chunk: dict[str, object], kind: ModelErrorKind) -> None:
    with pytest.raises(ModelError) as caught:
        decode(*text("Half"), chunk)
    assert caught.value.kind is kind


def test_a_null_error_field_is_no_error() -> None:
    assert text_of(decode({**delta("stop", content="fine"), "error": None})) == "fine"


def test_a_chunk_that_is_not_json() -> None:
    with pytest.raises(ModelError) as caught:
        decode("<html>")
    assert caught.value.kind is ModelErrorKind.SERVER


def test_a_whole_message_in_place_of_deltas() -> None:
    whole = {
        "choices": [
            {
                "message": {
                    "content": "Hi",
                    "tool_calls": [{"id": "c", "function": {"name": "exec", "arguments": "{}"}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
    events = decode(whole)
    assert text_of(events) == "Hi"
    assert calls_of(events) == [("c", "exec", "{}")]


def test_content_as_a_list_of_typed_chunks() -> None:
    events = decode(
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
        delta("stop", content=[{"type": "text", "text": "ok"}]),
    )
    assert (reasoning_of(events), text_of(events)) == ("hm", "ok")


def test_think_tags_become_reasoning() -> None:
    events = decode(*text("<thi", "nk>let me", " see</thi", "nk>\n\nYes."), delta("stop"))
    assert (reasoning_of(events), text_of(events)) == ("let me see", "Yes.")
    assert TextDelta("") not in events


def test_pr03_a_reply_of_thinking_only_has_no_text() -> None:
    """PR-03: a reply of `<think>` only."""
    events = decode(*text("<think>only</think>"), delta("stop"), usage(3, 2))
    assert (reasoning_of(events), text_of(events)) == ("only", "")
    assert usage_of(events) == Usage(input=3, output=2, total=5)


def test_nothing_is_read_after_the_end_mark() -> None:
    assert text_of(decode(*text("a"), "[DONE]", *text("b"))) == "a"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_tells_the_field_it_came_in(name: str) -> None:
    events = decode(*reasoning("Hm.", name=name), delta(content="<think>Oh.</think>Yes."), "[DONE]")
    named = [(e.text, e.name) for e in events if isinstance(e, ReasoningDelta)]
    assert named == [("Hm.", name), ("Oh.", "")]
