"""A real tokenizer, the measure of the estimates: OpenAI's vocabularies, from a wheel."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.support.fake_openai import Received, Reply, answer, text

PER_MESSAGE, PRIMER = 3, 3
"""What OpenAI's chat format adds to each message, and before the answer."""


@cache
def _encoding(name: str) -> Any:
    with warnings.catch_warnings():
        # It reads its vocabulary through a part of importlib.resources that is out of fashion.
        warnings.simplefilter("ignore", DeprecationWarning)
        import bpe_openai  # its vocabulary takes 0.2 s and 70 MB: only for whoever counts

        return bpe_openai.get_encoding(name)


def real(text: str, encoding: str = "o200k_base") -> int:
    """Tokens of `text`; half a surrogate pair counts as the sign for what cannot be read."""
    return len(_encoding(encoding).encode_ordinary(text.encode(errors="replace").decode()))


def prompt_tokens(request: Received) -> int:
    """What a provider that counts like OpenAI would bill for a request."""
    body = request.json
    messages, tools = body["messages"], body.get("tools") or []
    assert isinstance(messages, list)
    assert isinstance(tools, list)
    total = PRIMER + sum(real(json.dumps(tool["function"])) for tool in tools)
    for message in messages:
        total += PER_MESSAGE + _content(message.get("content"))
        for call in message.get("tool_calls") or ():
            total += real(call["function"]["name"]) + real(call["function"]["arguments"])
    return total


def counting(*answers: str) -> Callable[[Received], Reply]:
    """A fake server's handler: gives the answers in turn, the last one for ever, and counts."""
    left = list(answers)

    def handle(request: Received) -> Reply:
        said = left.pop(0) if len(left) > 1 else left[0]
        return answer(*text(said), counted=(prompt_tokens(request), real(said), 0))

    return handle


def _content(content: object) -> int:
    if isinstance(content, str):
        return real(content)
    blocks = content if isinstance(content, list) else []
    return sum(real(str(block.get("text", ""))) for block in blocks if isinstance(block, dict))
