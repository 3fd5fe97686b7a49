from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_engine.models.base import Encoded, Request, Turn, decode_span
from claw_engine.models.codecs.openai_chat import REASONING_PLACEHOLDER, encode, wire_text
from claw_engine.models.rules import ReasoningReplay, ThinkingField, WireRules
from claw_engine.parts import Part, PartKind
from tests.models.helpers import assistant, part, ref, request, result, tool, user

RULES = WireRules()


def body_of(req: Request, rules: WireRules = RULES) -> dict[str, Any]:
    value = json.loads(encode(req, rules, {}).body)
    assert isinstance(value, dict)
    return value


def parts_of(req: Request, rules: WireRules) -> dict[str, Part]:
    found = [*req.system, *(spec.part for spec in req.tools)]
    for turn in req.turns:
        found += turn.parts
        found += [call.arguments for call in turn.tool_calls]
        if rules.replay is ReasoningReplay.ALWAYS:
            found += turn.reasoning
    return {p.id: p for p in found}


def check_spans(encoded: Encoded, parts: dict[str, Part]) -> None:
    position = 0
    seen: list[str] = []
    for span in encoded.spans:
        assert span.start == position, "spans leave a gap or overlap"
        position = span.end
        if span.part_id is not None:
            seen.append(span.part_id)
            assert decode_span(encoded.body, span) == wire_text(parts[span.part_id].text)
    assert position == len(encoded.body)
    assert sorted(seen) == sorted(parts)


def test_the_body_has_openclaws_keys_in_order_and_never_stores() -> None:
    body = body_of(request(max_tokens=512, tools=[tool("exec")]))
    assert list(body) == ["model", "messages", "stream", "stream_options", "max_tokens", "tools"]
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 512
    function = body["tools"][0]["function"]
    assert body["tools"][0]["type"] == "function"
    assert function["name"] == "exec"


def test_a_whole_history_reads_back_as_messages() -> None:
    req = request(
        user('列出文件 "now"\n', "u1"),
        assistant("I look.", calls=[("c1", "exec", '{"command":"ls"}'), ("c2", "read", "{}")]),
        result("c1", "a\tb"),
        result("c2", ""),
        user("thanks 🦞", "u2"),
        system=("one", "two"),
    )
    messages = body_of(req)["messages"]
    assert [m["role"] for m in messages] == [
        "system", "user", "assistant", "tool", "tool", "user",
    ]  # fmt: skip
    assert messages[0]["content"] == "one\ntwo"
    assert messages[1]["content"] == '列出文件 "now"\n'
    assert messages[2]["tool_calls"][0] == {
        "id": "c1",
        "type": "function",
        "function": {"name": "exec", "arguments": '{"command":"ls"}'},
    }
    assert messages[3] == {"role": "tool", "tool_call_id": "c1", "content": "a\tb"}
    assert messages[4]["content"] == "(no output)"


def test_text_travels_as_utf8_not_as_escapes() -> None:
    encoded = encode(request(user("磁盘")), RULES, {})
    assert "磁盘".encode() in encoded.body


def test_an_assistant_without_text_is_valid_for_strict_servers() -> None:
    messages = body_of(
        request(user("x"), assistant(calls=[("c1", "exec", "{}")]), result("c1", "y"), assistant())
    )["messages"]
    assert messages[2]["content"] is None
    assert messages[4]["content"] == "(no text)"


@pytest.mark.parametrize("broken", ['{"path":"/n/a.md",}', "just text", "[1,2]", "", '{"a":1}{'])
def test_replayed_arguments_are_always_a_json_object(broken: str) -> None:
    messages = body_of(request(user("x"), assistant(calls=[("c1", "read", broken)])))["messages"]
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize(
    ("replay", "expected"),
    [
        (ReasoningReplay.NEVER, [None, None, None]),
        (ReasoningReplay.TOOL_CALLS, ["kept", REASONING_PLACEHOLDER, None]),
        (ReasoningReplay.ALWAYS, ["kept", REASONING_PLACEHOLDER, "spoken"]),
    ],
)
def test_reasoning_is_replayed_by_rule(replay: ReasoningReplay, expected: list[str | None]) -> None:
    req = request(
        user("x"),
        assistant(reasoning="kept", calls=[("c1", "exec", "{}")], id_="a1"),
        result("c1", "1"),
        assistant("again", calls=[("c2", "exec", "{}")], id_="a2"),
        result("c2", "2"),
        assistant("done", reasoning="spoken", id_="a3"),
    )
    messages = body_of(req, WireRules(replay=replay))["messages"]
    found = [m.get("reasoning_content") for m in messages if m["role"] == "assistant"]
    assert found == expected


@pytest.mark.parametrize(
    ("field", "level", "expected"),
    [
        (ThinkingField.NONE, "high", {}),
        (ThinkingField.EFFORT, "high", {"reasoning_effort": "high"}),
        (ThinkingField.EFFORT, "off", {}),
        (ThinkingField.NESTED_EFFORT, "low", {"reasoning": {"effort": "low"}}),
        (ThinkingField.TOGGLE, "off", {"thinking": {"type": "disabled"}}),
        (ThinkingField.TOGGLE, "medium", {"thinking": {"type": "enabled"}}),
    ],
)
def test_thinking_is_asked_for_in_the_providers_way(
    field: ThinkingField, level: str, expected: dict[str, object]
) -> None:
    rules = WireRules(thinking=field)
    plain = body_of(request(thinking=level), rules)
    thinking = body_of(request(model=ref(reasoning=True), thinking=level), rules)
    assert {k: v for k, v in thinking.items() if k not in plain} == expected
    assert "thinking" not in plain and "reasoning_effort" not in plain


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
    ],
)
def test_the_address_of_a_call(base: str, url: str) -> None:
    assert encode(request(model=ref(base)), RULES, {}).url == url


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("plain", "plain"),
        ("lone \ud800!", "lone \ufffd!"),
        ("low \udc80", "low \ufffd"),
        ("pair \ud83e\udd9e", "pair 🦞"),
    ],
)
def test_text_that_is_no_unicode_is_replaced(text: str, sent: str) -> None:
    assert wire_text(text) == sent
    assert body_of(request(user(text)))["messages"][1]["content"] == sent


anything = st.text(
    st.one_of(
        st.characters(),  # hypothesis leaves surrogates out unless asked
        st.characters(categories=["Cs"]),
        st.sampled_from('"\\\n\r\t\0\x7f\u2028\u2029🦞漢字\u202e\ufeff'),
    ),
    max_size=40,
)
json_objects = st.dictionaries(
    st.text(max_size=5), st.one_of(st.text(max_size=10), st.integers()), max_size=3
).map(lambda value: json.dumps(value, ensure_ascii=False))


@st.composite
def requests(draw: st.DrawFn) -> Request:
    turns: list[Turn] = []
    for index in range(draw(st.integers(0, 4))):
        role = draw(st.sampled_from(["user", "assistant", "tool"]))
        texts = draw(st.lists(anything, max_size=3))
        kind = PartKind.USER
        turn_parts = tuple(part(t, kind, f"{index}.{n}") for n, t in enumerate(texts))
        if role == "assistant":
            calls = draw(st.lists(json_objects, max_size=2))
            head = assistant(
                reasoning=draw(anything),
                calls=[(f"c{index}{n}", "exec", a) for n, a in enumerate(calls)],
                id_=f"a{index}",
            )
            turn = Turn("assistant", turn_parts, head.reasoning, head.tool_calls)
            if turn.tool_calls and not any(p.text for p in turn_parts):
                turn = Turn("assistant", (), head.reasoning, head.tool_calls)
        elif role == "tool":
            turn = Turn("tool", turn_parts, tool_call_id=draw(anything))
        else:
            turn = Turn("user", turn_parts)
        turns.append(turn)
    return Request(
        model=ref(),
        system=tuple(
            part(t, PartKind.SECTION, f"s{n}")
            for n, t in enumerate(draw(st.lists(anything, max_size=3)))
        ),
        tools=tuple(tool(f"t{n}") for n in range(draw(st.integers(0, 2)))),
        turns=tuple(turns),
    )


@settings(max_examples=300, deadline=None)
@given(requests())
def test_spans_cover_every_byte_and_give_back_every_part(req: Request) -> None:
    rules = WireRules(replay=ReasoningReplay.ALWAYS)
    encoded = encode(req, rules, {})
    json.loads(encoded.body)
    check_spans(encoded, parts_of(req, rules))
