"""The chunks of an OpenAI chat-completions stream → model events. Incremental and pure.

Tolerates what providers really send: chunks without choices, usage anywhere, tool-call deltas
without index or id, whole messages instead of deltas. Knows no network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Literal, TypeAlias

from claw_engine.messages import Usage
from claw_engine.models.base import (
    Finished,
    ModelError,
    ModelErrorKind,
    ModelEvent,
    ModelRef,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from claw_engine.models.codecs.tool_deltas import ToolDeltas
from claw_engine.models.errors import provider_error_from, stream_error
from claw_engine.models.think import ThinkSplitter

StopReason: TypeAlias = Literal["stop", "length", "toolUse"]

DONE = "[DONE]"

_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}
# Where the text of a model's reasoning may stand, in order of preference.
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


class ChatStreamDecoder:
    """Reads one answer. `feed` each SSE data text, then `finish` once at the end.

    `new_id` names a call when the provider did not. Raises ModelError for an error object inside
    the stream, for a stream that breaks off, and for an answer that a content filter stopped.
    """

    def __init__(
        self, ref: ModelRef, new_id: Callable[[], str], secrets: Collection[str] = ()
    ) -> None:
        self._ref = ref
        self._secrets = secrets
        self._think = ThinkSplitter()
        self._tools = ToolDeltas(new_id)
        self._usage: Usage | None = None
        self._finish: str | None = None
        self.done = False

    @property
    def complete(self) -> bool:
        """True when nothing is missing: a finish reason or the end mark has arrived."""
        return self.done or self._finish is not None

    def feed(self, data: str) -> list[ModelEvent]:
        """Events of one chunk."""
        if self.done:
            return []
        if data.strip() == DONE:
            self.done = True
            return []
        if not data.strip():
            return []
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise ModelError(
                f"{self._ref.provider} ({self._ref.id}) sent a piece of answer that is not JSON.",
                kind=ModelErrorKind.SERVER,
                hint="Check that the base URL is an OpenAI-compatible API. Trying again may help.",
            ) from None
        return self._chunk(chunk) if isinstance(chunk, dict) else []

    def finish(self) -> list[ModelEvent]:
        """The last events, `Finished` included. Raises ModelError(cut) for a broken stream."""
        if not self.complete:
            raise ModelError(
                f"{self._ref.provider} ({self._ref.id}) broke off in the middle of its answer.",
                kind=ModelErrorKind.CUT,
                hint="Try again. If it repeats, look at the provider's or the proxy's limits.",
            )
        reasoning, text = self._think.flush()
        events = _spoken(reasoning, text)
        events += self._tools.flush()
        events.append(Finished(self._stop_reason()))
        return events

    def _chunk(self, chunk: dict[str, object]) -> list[ModelEvent]:
        if chunk.get("error") or chunk.get("object") == "error":
            error = provider_error_from(chunk)
            if error is not None:
                raise stream_error(self._ref, error, self._secrets)
        events: list[ModelEvent] = []
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(choice, dict):
            events += self._choice(choice)
        usage = chunk.get("usage")
        if not isinstance(usage, dict) and isinstance(choice, dict):
            usage = choice.get("usage")
        if isinstance(usage, dict):
            seen = read_usage(usage)
            if seen != self._usage:
                self._usage = seen
                events.append(UsageSeen(seen))
        return events

    def _choice(self, choice: dict[str, object]) -> list[ModelEvent]:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = choice.get("message")
        events: list[ModelEvent] = []
        if isinstance(delta, dict):
            name, reasoning = next(
                ((f, v) for f in _REASONING_FIELDS if isinstance(v := delta.get(f), str) and v),
                ("", ""),
            )
            listed, text = _content(delta.get("content"))
            refusal = delta.get("refusal")
            if isinstance(refusal, str):
                text += refusal
            thought, visible = self._think.feed(text) if text else ("", "")
            events += _spoken(reasoning + listed + thought, visible, name)
            events += self._tools.feed(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish = reason
        return events

    def _stop_reason(self) -> StopReason:
        match self._finish:
            case "content_filter":
                raise ModelError(
                    f"The content filter of {self._ref.provider} stopped the answer.",
                    kind=ModelErrorKind.BAD_REQUEST,
                    hint="Say it in other words, or choose another model.",
                )
            case "insufficient_system_resource":
                raise ModelError(
                    f"{self._ref.provider} ({self._ref.id}) ran out of capacity mid-answer.",
                    kind=ModelErrorKind.OVERLOADED,
                    hint="Wait a little, or choose another model.",
                )
            case "error" | "network_error":
                raise ModelError(
                    f"{self._ref.provider} ({self._ref.id}) ended its answer with an error.",
                    kind=ModelErrorKind.SERVER,
                    hint="Try again in a moment.",
                )
        reason = _STOP_REASONS.get(self._finish or "", "stop")
        if reason == "length":
            return reason
        # Some servers say "stop" after tool calls, others "tool_calls" without any.
        return "toolUse" if self._tools.seen else "stop"


def read_usage(raw: Mapping[str, object]) -> Usage:
    """Token counters; cached prompt tokens are counted apart from `input`, as OpenClaw does."""
    details = raw.get("prompt_tokens_details")
    inner: Mapping[str, object] = details if isinstance(details, dict) else {}
    prompt = _count(raw.get("prompt_tokens"))
    output = _count(raw.get("completion_tokens"))
    # DeepSeek names the cache hit on the top level.
    cached = _count(inner.get("cached_tokens")) or _count(raw.get("prompt_cache_hit_tokens"))
    written = _count(inner.get("cache_write_tokens"))
    return Usage(
        input=max(0, prompt - cached - written),
        output=output,
        cache_read=cached,
        cache_write=written,
        total=_count(raw.get("total_tokens")) or prompt + output,
    )


def _spoken(reasoning: str, text: str, name: str = "") -> list[ModelEvent]:
    events: list[ModelEvent] = []
    if reasoning:
        events.append(ReasoningDelta(reasoning, name))
    if text:
        events.append(TextDelta(text))
    return events


def _content(content: object) -> tuple[str, str]:
    """Reasoning and text of a content value: a string, or Mistral's list of typed chunks."""
    if isinstance(content, str):
        return "", content
    if not isinstance(content, list):
        return "", ""
    reasoning: list[str] = []
    text: list[str] = []
    for item in content:
        match item:
            case {"type": "text", "text": str(piece)}:
                text.append(piece)
            case {"type": "thinking", "thinking": thinking}:
                reasoning.append("".join(_content(thinking)))
            case _:
                continue
    return "".join(reasoning), "".join(text)


def _count(value: object) -> int:
    return max(0, int(value)) if isinstance(value, int | float) and value == value else 0
