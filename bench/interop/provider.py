"""The model both programs talk to: a scripted OpenAI-compatible server on loopback.

What it answers is told by a mark in the newest user message, so that either program can be made
to say, call a tool, write at length or hang; it keeps every request, which shows what of a file
the reader really took for its context. Knows neither program.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Self

from tests.support.fake_openai import (
    FakeOpenAI,
    Hold,
    Received,
    Reply,
    answer,
    error,
    reasoning,
    text,
    tool_call,
)

SUMMARY = "## Goal\nSummary by the scripted model: long letters about whales were exchanged."
_MARK = re.compile(r"#(say|think|inline|fail|exec|read|write|slow|long)(?::([^\s#]+))?")
SENTENCE = "The whale sings under the ice and nobody upstairs can tell which song it is. "


class Provider(FakeOpenAI):
    """`async with Provider() as provider:` then `provider.base_url`, `provider.newest()`."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self._calls = itertools.count(1)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        return self

    def heard(self, word: str) -> str:
        """All message texts of the newest request whose last messages hold `word`. LookupError."""
        return "\n".join(map(_text, self._about(word)))

    def thoughts(self, word: str) -> str:
        """All reasoning that the newest request about `word` gave back."""
        return "\n".join(str(m.get("reasoning_content", "")) for m in self._about(word))

    def _about(self, word: str) -> Sequence[dict[str, object]]:
        for request in reversed(self.requests):
            messages = _messages(request)
            if any(word in _text(m) for m in messages[-3:]):
                return messages
        raise LookupError(f"no request about {word!r}")

    def _answer(self, request: Received) -> Reply:
        body = request.json
        messages = list(_messages(request))
        while messages and "_INTERNAL_CONTEXT>>>" in _text(messages[-1]):
            messages.pop()  # 2026.9.6 adds one of its own at the end
        if not body.get("tools"):
            return answer(*text(SUMMARY), counted=(900, 30, 0))
        last = messages[-1] if messages else {}
        if last.get("role") == "tool":
            return answer(*text(f"The tool said: {_text(last)[:60]}"), counted=(900, 9, 0))
        asked = _text(last)
        found = list(_MARK.finditer(asked))
        if not found:
            return answer(*text("I heard you."), counted=(800, 4, 0))
        kind, value = found[-1][1], (found[-1][2] or "").replace("_", " ")
        call_id = f"call_{next(self._calls)}"
        match kind:
            case "say":
                return answer(*text("You said ", f"{value}."), counted=(800, 4, 0))
            case "think":
                steps = [*reasoning("Let me ponder. "), *text("I have thought.")]
                return answer(*steps, counted=(800, 9, 0))
            case "inline":
                return answer(*text("<think>Hm. </think>", "I thought aloud."))
            case "fail":
                return error(400, "the scripted model refuses")
            case "long":
                filler = SENTENCE * (int(value) * 1000 // len(SENTENCE))
                pieces = [filler[i : i + 2000] for i in range(0, len(filler), 2000)]
                return answer(*text(*pieces), counted=(800 + len(asked) // 4, len(filler) // 4, 0))
            case "slow":
                return Reply([*text("one ", "two ", "three "), Hold()])
        arguments: dict[str, str]
        match kind:
            case "exec":
                arguments = {"command": value}
            case "read":
                arguments = {"path": value}
            case _:
                arguments = {"path": value, "content": "# A note\nThe blue whale is large.\n"}
        call = tool_call(0, call_id, kind, json.dumps(arguments))
        return answer(*text("Let me see. "), *call, finish="tool_calls", counted=(850, 12, 0))


def _messages(request: Received) -> Sequence[dict[str, object]]:
    found = request.json.get("messages")
    return found if isinstance(found, list) else []


def _text(message: dict[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(str(b.get("text", "")) for b in content if isinstance(b, dict))
