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

    __slots__ = ("_fenced", "_held", "_settled", "found")

    def __init__(self) -> None:
        self.found = False
        self._fenced = False
        self._held = ""  # the start of the line, as long as it may become an opener
        self._settled = False  # whether the rest of the line can be let through unseen

    def feed(self, text: str) -> str:
        """Text that may be shown now. Costs the same however long the line has become."""
        if self._settled and "\n" not in text and "\r" not in text:
            return text
        out: list[str] = []
        for piece in text.splitlines(keepends=True):
            if self.found:
                break
            out.append(self._piece(piece))
        return "".join(out)

    def flush(self) -> str:
        """What was held back, at the end of the answer."""
        held, self._held = self._held, ""
        return "" if self.found else held

    def _piece(self, piece: str) -> str:
        ended = piece.endswith(("\n", "\r"))
        if self._settled:
            self._settled = not ended
            return piece
        line = self._held + piece
        head = line.lstrip()
        if not self._fenced and head.startswith(_OPENERS):
            self.found = True
            return ""
        if not ended and (_may_fence(head) or (not self._fenced and _may_open(head))):
            self._held = line
            return ""
        if _FENCE.match(line):
            self._fenced = not self._fenced
        self._held, self._settled = "", not ended
        return line


def _may_open(head: str) -> bool:
    return any(opener.startswith(head) for opener in _OPENERS)


def _may_fence(head: str) -> bool:
    """Whether more text could still make a code fence of it."""
    return head in ("", "`", "``", "~", "~~")
