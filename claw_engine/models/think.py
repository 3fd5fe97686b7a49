"""Reasoning written into the answer: a leading `<think>…</think>` becomes reasoning.

Stateful over chunks, holds back only what may still be a tag. Pure; knows no provider.
"""

from __future__ import annotations

from enum import StrEnum

# The tags OpenClaw strips from visible text.
_TAGS = ("think", "thinking", "thought", "antthinking")
_OPEN = tuple(f"<{tag}>" for tag in _TAGS)


class _State(StrEnum):
    START = "start"  # nothing but white space so far
    INSIDE = "inside"
    TEXT = "text"


class ThinkSplitter:
    """Splits streamed content into (reasoning, text).

    Only a block at the very beginning counts (several in a row too); a tag later in the text is
    text, because an answer may speak about tags.
    """

    __slots__ = ("_close", "_held", "_state")

    def __init__(self) -> None:
        self._state = _State.START
        self._held = ""
        self._close = ""

    def feed(self, text: str) -> tuple[str, str]:
        """Reasoning and text that are certain now."""
        if self._state is _State.TEXT:
            return "", text
        self._held += text
        reasoning: list[str] = []
        while True:
            if self._state is _State.START:
                head = self._held.lstrip()
                opener = next((tag for tag in _OPEN if head.startswith(tag)), None)
                if opener is not None:
                    self._state, self._close = _State.INSIDE, f"</{opener[1:]}"
                    self._held = head[len(opener) :]
                    continue
                if any(tag.startswith(head) for tag in _OPEN):
                    return "".join(reasoning), ""
                self._state = _State.TEXT
                visible, self._held = (head if self._close else self._held), ""
                return "".join(reasoning), visible
            before, found, after = self._held.partition(self._close)
            if not found:
                keep = _overlap(self._held, self._close)
                cut = len(self._held) - keep
                reasoning.append(self._held[:cut])
                self._held = self._held[cut:]
                return "".join(reasoning), ""
            reasoning.append(before)
            self._state, self._held = _State.START, after

    def flush(self) -> tuple[str, str]:
        """The rest, at the end of the answer; an unclosed block is reasoning."""
        held, self._held = self._held, ""
        if self._state is _State.INSIDE:
            return held, ""
        return "", held if held.strip() else ""


def _overlap(text: str, tag: str) -> int:
    """Length of the longest end of `text` that begins `tag`."""
    for size in range(min(len(text), len(tag) - 1), 0, -1):
        if tag.startswith(text[-size:]):
            return size
    return 0
