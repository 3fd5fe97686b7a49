"""Tool markup written as text: models without native tools print `<tool_call>` blocks.

Such text is never executed (a quoted file could hold it). These functions find it and keep it off
the screen; what to do next is the agent's decision. Pure.
"""

from __future__ import annotations

import re

# Openers as Hermes/Qwen, Llama, Mistral, DeepSeek and Anthropic-style templates print them.
_OPENERS = (
    "<tool_call>",
    "<tool_calls>",
    "<tool_use>",
    "<|tool_call",
    "<function=",
    "<function_call>",
    "<function_calls>",
    "<invoke name=",
    "<｜tool▁call",
    "[TOOL_CALLS]",
    "<|python_tag|>",
)
_FENCE = re.compile(r"^\s*(```|~~~)")


def looks_like_tool_markup(text: str) -> bool:
    """True when a line outside code fences starts with a tool-call opener."""
    return _markup_offset(text) is not None


def strip_tool_markup(text: str) -> str:
    """The text before the first tool-call opener; all of it when there is none."""
    offset = _markup_offset(text)
    return text if offset is None else text[:offset].rstrip()


def _markup_offset(text: str) -> int | None:
    position = 0
    fenced = False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.lstrip().startswith(_OPENERS):
            return position
        position += len(line)
    return None


class MarkupFilter:
    """Hides tool markup while text streams in.

    `feed` returns what may be shown; the start of a line is held back as long as it may still
    become an opener. After an opener nothing more is shown and `found` is true.
    """

    __slots__ = ("_fenced", "_line", "_shown", "found")

    def __init__(self) -> None:
        self.found = False
        self._fenced = False
        self._line = ""  # the line being written
        self._shown = 0  # how many of its characters were let through

    def feed(self, text: str) -> str:
        """Text that may be shown now."""
        out: list[str] = []
        for piece in text.splitlines(keepends=True):
            if self.found:
                break
            self._line += piece
            out.append(self._advance())
        return "".join(out)

    def flush(self) -> str:
        """What was held back, at the end of the answer."""
        return "" if self.found else self._release()

    def _advance(self) -> str:
        head = self._line.lstrip()
        ended = self._line.endswith(("\n", "\r"))
        if not self._fenced and head.startswith(_OPENERS):
            self.found = True
            return ""
        if not ended and not self._fenced and _may_open(head):
            return ""
        text = self._release()
        if ended:
            if _FENCE.match(self._line):
                self._fenced = not self._fenced
            self._line, self._shown = "", 0
        return text

    def _release(self) -> str:
        text = self._line[self._shown :]
        self._shown = len(self._line)
        return text


def _may_open(head: str) -> bool:
    return any(opener.startswith(head) for opener in _OPENERS)
