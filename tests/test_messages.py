"""Messages: what the transcript holds comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.messages import (
    AssistantMessage,
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    Usage,
    UserMessage,
    message_from_json,
    message_to_json,
    text_of,
)

text = st.text(max_size=20)
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, text),
    st.builds(ThinkingBlock, text, st.none() | text),
    st.builds(ToolCallBlock, text, text, st.dictionaries(text, text | st.integers())),
)
content = st.lists(blocks, max_size=4).map(tuple)
stamp = st.integers(0, 2**45)
messages = st.one_of(
    st.builds(UserMessage, content, stamp, st.just({"provenance": {"kind": "x"}})),
    st.builds(
        AssistantMessage,
        content,
        text,
        text,
        text,
        st.builds(Usage, stamp, stamp),
        st.sampled_from(["stop", "toolUse", "aborted"]),
        stamp,
        st.none() | text,
    ),
    st.builds(ToolResultMessage, text, text, content, st.booleans(), stamp),
)


@given(messages)
def test_a_message_survives_the_file(message: UserMessage | AssistantMessage) -> None:
    line = json.dumps(message_to_json(message))
    assert message_from_json(json.loads(line)) == message


def test_unknown_fields_and_blocks_are_kept() -> None:
    raw = {
        "role": "user",
        "timestamp": 3,
        "future": {"a": 1},
        "content": [{"type": "hologram", "z": 1}, {"type": "text", "text": "hi"}],
    }
    message = message_from_json(raw)
    assert message_to_json(message) == raw
    assert text_of(message) == "hi"


@pytest.mark.parametrize("kind", ["tool_call", "toolUse", "functionCall"])
def test_older_spellings_of_a_tool_call_are_read(kind: str) -> None:
    raw = {"role": "assistant", "content": [{"type": kind, "id": "a", "name": "read", "input": {}}]}
    assert message_from_json(raw).content == (ToolCallBlock("a", "read", {}),)


def test_a_role_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="wizard"):
        message_from_json({"role": "wizard", "content": []})


def test_plain_string_content_is_text() -> None:
    assert text_of(message_from_json({"role": "user", "content": "hello"})) == "hello"


GOLDEN = Path(__file__).parent / "golden" / "messages.jsonl"


def test_recorded_messages_lose_nothing() -> None:
    for line in GOLDEN.read_text().splitlines():
        raw = json.loads(line)
        out = message_to_json(message_from_json(raw))
        for key, value in raw.items():
            assert out[key] == value, key
