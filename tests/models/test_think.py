from __future__ import annotations

import pytest

from claw_engine.models.think import ThinkSplitter


def split(text: str, size: int) -> tuple[str, str]:
    splitter = ThinkSplitter()
    pieces = [splitter.feed(text[i : i + size]) for i in range(0, len(text), size)]
    pieces.append(splitter.flush())
    return "".join(p[0] for p in pieces), "".join(p[1] for p in pieces)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("text", "reasoning", "visible"),
    [
        ("plain", "", "plain"),
        ("  indented", "", "  indented"),
        ("<think>a</think>b", "a", "b"),
        ("\n<think>\na</think>\n\nb", "\na", "b"),
        ("<thinking>a</thinking>b", "a", "b"),
        ("<think>a</think><think>c</think>b", "ac", "b"),
        ("<think>never closed", "never closed", ""),
        ("<think>a</thin</think>b", "a</thin", "b"),
        ("<think>only</think>", "only", ""),
        ("say <think>a</think>", "", "say <think>a</think>"),
        ("<thin air", "", "<thin air"),
        ("<", "", "<"),
        ("", "", ""),
    ],
)
def test_a_leading_block_is_reasoning(text: str, reasoning: str, visible: str, size: int) -> None:
    assert split(text, size) == (reasoning, visible)


def test_text_flows_at_once_after_the_decision() -> None:
    splitter = ThinkSplitter()
    assert splitter.feed("Hello") == ("", "Hello")
    assert splitter.feed(" <") == ("", " <")
