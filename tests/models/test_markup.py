from __future__ import annotations

import pytest

from claw_engine.models.markup import MarkupFilter, looks_like_tool_markup, strip_tool_markup

CALL = '<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CALL, True),
        (f"I will read it.\n\n  {CALL}", True),
        ("<function=exec>\n<parameter=command>ls", True),
        ('[TOOL_CALLS][{"name":"x"}]', True),
        ("<｜tool▁calls▁begin｜>", True),
        ("", False),
        ("plain answer", False),
        (f"Write it as `{CALL}` in the text.", False),
        (f"```xml\n{CALL}\n```\nThat is the format.", False),
        (f"```xml\nx\n```\n{CALL}", True),
    ],
)
def test_pr03_tool_markup_is_recognised_outside_quotes(text: str, found: bool) -> None:
    assert looks_like_tool_markup(text) is found


def test_pr03_markup_is_cut_from_what_is_shown() -> None:
    assert strip_tool_markup(f"I will read it.\n{CALL}") == "I will read it."
    assert strip_tool_markup(CALL) == ""
    assert strip_tool_markup("no markup") == "no markup"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"I will read it.\n{CALL}\nafter", "I will read it.\n"),
        (CALL, ""),
        ("a <b> c\n<to be sure\n<tool", "a <b> c\n<to be sure\n<tool"),
        (f"```\n{CALL}\n```\nend", f"```\n{CALL}\n```\nend"),
        ("one\r\ntwo", "one\r\ntwo"),
    ],
)
def test_pr03_streamed_markup_never_reaches_the_screen(text: str, shown: str, size: int) -> None:
    """PR-03: whichever way the markup is cut into chunks."""
    hide = MarkupFilter()
    out = "".join(hide.feed(text[i : i + size]) for i in range(0, len(text), size)) + hide.flush()
    assert out == shown
    assert hide.found is (shown != text)
