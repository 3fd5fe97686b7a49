"""A model behind an OpenAI-compatible API: codec, transport and learned rules put together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable

from msgspec.structs import replace

from claw_engine.models.base import (
    Encoded,
    ModelError,
    ModelErrorKind,
    ModelEvent,
    ModelRef,
    Request,
)
from claw_engine.models.codecs import openai_chat
from claw_engine.models.codecs.openai_chat import TurnMemos
from claw_engine.models.codecs.openai_stream import ChatStreamDecoder
from claw_engine.models.errors import secrets_of
from claw_engine.models.merge import merged
from claw_engine.models.rules import ReasoningReplay, RuleBook, WireRules
from claw_engine.models.transport import RefusedRequest, Transport
from claw_engine.world import World

API = "openai-completions"


class OpenAIChatModel:
    """One model of one provider. Cheap to make; transport and rule book are shared."""

    def __init__(
        self,
        ref: ModelRef,
        world: World,
        transport: Transport,
        rules: RuleBook,
        memos: TurnMemos | None = None,
    ) -> None:
        self._ref = ref
        self._memos = memos or TurnMemos()
        self._world = world
        self._transport = transport
        self._rules = rules

    @property
    def ref(self) -> ModelRef:
        return self._ref

    def encode(self, request: Request) -> Encoded:
        """The bytes to send under the rules known now."""
        if request.model != self._ref:  # this object speaks to its own model only
            request = replace(request, model=self._ref)
        rules = self._rules.rules(self._ref)
        return openai_chat.encode(request, rules, self._headers(), self._memos.under(rules))

    async def stream(self, encoded: Encoded, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """Send and yield events until `Finished`.

        A refusal that teaches a new replay rule is raised as retryable with `retry_after_ms` 0:
        the next `encode` follows the rule. A body encoded before the lesson is encoded anew here,
        so a caller that sends it again does not meet the same refusal.
        """
        used = self._rules.rules(self._ref)
        encoded = self._current(encoded, request)
        decoder = ChatStreamDecoder(
            self._ref,
            lambda: f"call_{self._world.ids.hex(24)}",
            secrets=secrets_of(encoded.headers),
        )
        try:
            async with contextlib.aclosing(self._transport.events(self._ref, encoded)) as events:
                async for batch in events:
                    found, failure = _decoded(decoder, batch)
                    for event in merged(found):
                        yield event
                    if failure is not None:
                        raise failure
                    if decoder.done:
                        await _drain(events)
                        break
        except RefusedRequest as error:
            raise self._learn(error, used) from None
        except ModelError as error:
            # A server that goes away after its finish reason has said all it had to say.
            if not (decoder.complete and error.kind in _LATE):
                raise
        for event in decoder.finish():
            yield event

    def _current(self, encoded: Encoded, request: Request) -> Encoded:
        if not self._rules.learned():
            return encoded
        fresh = self.encode(request)
        return encoded if fresh.body == encoded.body else fresh

    def _learn(self, error: RefusedRequest, used: WireRules) -> ModelError:
        now_ms = self._world.clock.now_ms()
        if self._rules.learn(self._ref, used, error, error.evidence, now_ms):
            error.retryable = True
            error.retry_after_ms = 0
            title = (
                f"{self._ref.provider} ({self._ref.id}) "
                + _LESSON[self._rules.rules(self._ref).replay]
            )
            error.title, error.args = title, (title,)
        return error

    def _headers(self) -> dict[str, str]:
        headers = dict(self._ref.headers)
        if self._ref.api_key and not any(name.lower() == "authorization" for name in headers):
            headers["Authorization"] = f"Bearer {self._ref.api_key}"
        return headers


def _decoded(
    decoder: ChatStreamDecoder, batch: Iterable[str]
) -> tuple[list[ModelEvent], ModelError | None]:
    """What a batch says, up to the piece that cannot be read."""
    found: list[ModelEvent] = []
    try:
        for data in batch:
            found += decoder.feed(data)
    except ModelError as error:
        return found, error
    return found, None


async def _drain(events: AsyncGenerator[list[str], None]) -> None:
    """Read the end of the body, which lets the connection serve the next call."""
    with contextlib.suppress(TimeoutError, ModelError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in events:
                pass


# The end of the body comes with the end mark; a server that keeps silent then loses the connection.
_DRAIN_SECONDS = 0.1
_LESSON = {
    ReasoningReplay.NEVER: "refuses the reasoning of earlier steps; trying again without it.",
    ReasoningReplay.TOOL_CALLS: "wants the reasoning of earlier tool calls; trying again with it.",
    ReasoningReplay.ALWAYS: "wants the reasoning of every earlier step; trying again with it.",
}
_LATE = frozenset({ModelErrorKind.CUT, ModelErrorKind.TIMEOUT, ModelErrorKind.NETWORK})
