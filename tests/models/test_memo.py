"""A conversation is encoded once: a memo changes the cost, never a byte or a span."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claw_engine.models.base import Request, Turn
from claw_engine.models.codecs.openai_chat import TurnMemo, encode
from claw_engine.models.rehearsal import REHEARSAL
from claw_engine.models.rules import WireRules
from claw_engine.parts import Part, PartKind

texts = st.lists(st.text(max_size=12), min_size=1, max_size=6)


def request_of(turns: tuple[Turn, ...]) -> Request:
    system = (Part("s", PartKind.SECTION, "section:s", 'be "good"'),)
    return Request(REHEARSAL, system, (), turns)


@given(texts, st.integers(1, 3))
def test_memo_and_plain_are_equal_also_the_second_time(words: list[str], limit: int) -> None:
    rules = WireRules()
    memo = TurnMemo(rules, limit)
    turns = tuple(
        Turn(
            "user",
            (Part(f"{n}:a", PartKind.USER, "x", word), Part(f"{n}:b", PartKind.USER, "x", "b")),
        )
        for n, word in enumerate(words)
    )
    for count in range(1, len(turns) + 1):
        request = request_of(turns[:count])
        plain = encode(request, rules, {})
        for _ in range(2):
            again = encode(request, rules, {}, memo)
            assert (again.body, again.spans, again.url) == (plain.body, plain.spans, plain.url)
