"""The rehearsal model: needs no key and no network, is deterministic, and is not an AI.

It encodes with the codec that real models use (so every byte of a request can be shown) and then
plays its script as a stream. Knows no tool; a caller runs the calls it asks for.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from itertools import islice

from claw_engine.messages import Usage
from claw_engine.models.base import (
    REHEARSAL_PROVIDER,
    Encoded,
    Finished,
    ModelError,
    ModelErrorKind,
    ModelEvent,
    ModelRef,
    ReasoningDelta,
    Request,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    UsageSeen,
)
from claw_engine.models.codecs import openai_chat
from claw_engine.models.codecs.openai_chat import TurnMemos
from claw_engine.models.errors import ProviderError, status_error
from claw_engine.models.rehearsal_script import Call, Fail, Long, Speak, Step, script
from claw_engine.models.rules import WireRules
from claw_engine.world import Clock

API = "rehearsal"
REHEARSAL = ModelRef(provider=REHEARSAL_PROVIDER, id="stage", api=API, base_url="rehearsal:")

# Seconds of silence of `fail: slow` before the call is given up.
SLOW_SECONDS = 30.0
RETRY_AFTER_MS = 1_000
_WORDS = re.compile(r"\s*\S+\s*$|\s*\S+")
_LONG_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# Tokens between two turns of the event loop while nothing paces the stream.
_BREATH = 64
_CHARS_PER_TOKEN = 4


class RehearsalModel:
    """Plays `rehearsal_script`. `clock` paces `long` and `fail: slow`."""

    def __init__(
        self, clock: Clock, ref: ModelRef = REHEARSAL, memos: TurnMemos | None = None
    ) -> None:
        self._clock = clock
        self._ref = ref
        self._memos = memos or TurnMemos()

    @property
    def ref(self) -> ModelRef:
        return self._ref

    def encode(self, request: Request) -> Encoded:
        """The body that an OpenAI-compatible server would receive; nobody does."""
        rules = WireRules()
        return openai_chat.encode(request, rules, {}, self._memos.under(rules))

    async def stream(self, encoded: Encoded, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Play the script for `request`. Raises ModelError for the `fail` verb."""
        words = 0
        calls = 0
        for step in script(request):
            async for event in self._play(step, calls, encoded):
                if isinstance(event, TextDelta | ReasoningDelta):
                    words += len(event.text.split())
                yield event
            calls += isinstance(step, Call)
        prompt = len(encoded.body) // _CHARS_PER_TOKEN
        yield UsageSeen(Usage(input=prompt, output=words, total=prompt + words))
        yield Finished("toolUse" if calls else "stop")

    async def _play(self, step: Step, index: int, encoded: Encoded) -> AsyncIterator[ModelEvent]:
        match step:
            case Speak(text, reasoning):
                words = _split(text)
                while said := "".join(islice(words, _BREATH)):
                    yield ReasoningDelta(said) if reasoning else TextDelta(said)
                    await asyncio.sleep(0)
            case Call(tool, arguments):
                yield ToolCallStart(index, _call_id(encoded, index), tool)
                yield ToolCallDelta(index, json.dumps(dict(arguments), ensure_ascii=False))
            case Long(tokens, rate):
                async for event in self._long(tokens, rate):
                    yield event
            case Fail(mode):
                if mode == "cut":
                    yield TextDelta("This answer breaks off in the middle of ")
                raise await self._failure(mode)

    async def _long(self, tokens: int, rate: float) -> AsyncIterator[ModelEvent]:
        """Keeps to a schedule, so that a slow consumer does not slow the rate down.

        What is due at the same moment comes as one event, as from a socket.
        """
        start = self._clock.monotonic()
        said = 0
        while said < tokens:
            due = min(tokens, said + _BREATH)
            if rate > 0:
                now = self._clock.monotonic()
                due = min(due, int((now - start) * rate) + 1)
                if due <= said:
                    await self._clock.sleep(start + said / rate - now)
                    # A timer may fire a little early: what it was set for is due.
                    due = said + 1
            words = (_LONG_WORDS[number % len(_LONG_WORDS)] for number in range(said, due))
            yield TextDelta(" ".join(words) + " ")
            if due - said == _BREATH:
                await asyncio.sleep(0)
            said = due

    async def _failure(self, mode: str) -> ModelError:
        match mode:
            case "slow":
                await self._clock.sleep(SLOW_SECONDS)
                return ModelError(
                    "The rehearsal model kept silent until the call was given up, as you asked.",
                    kind=ModelErrorKind.TIMEOUT,
                    hint="This rehearses a provider that never answers.",
                )
            case "cut":
                return ModelError(
                    "The rehearsal model broke off in the middle of its answer, as you asked.",
                    kind=ModelErrorKind.CUT,
                    hint="This rehearses a connection that breaks.",
                )
            case _:
                return status_error(
                    self._ref,
                    int(mode),
                    ProviderError(message="rehearsed failure, as you asked"),
                    retry_after_ms=RETRY_AFTER_MS if mode == "429" else None,
                )


def _split(text: str) -> Iterator[str]:
    """Words with the white space before them; joined they are the text again."""
    return (match[0] for match in _WORDS.finditer(text))


def _call_id(encoded: Encoded, index: int) -> str:
    """Deterministic, and new for each request because the history in the body grows."""
    return f"call_{hashlib.sha256(encoded.body).hexdigest()[:16]}{index:02d}"
