"""How providers of one API differ on the wire, and what we learned about them at run time.

A rule is data; the codec reads it, the transport's errors teach it. Knows no HTTP.
"""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.models.base import ModelError, ModelRef
from claw_engine.patterns import late


class ReasoningReplay(StrEnum):
    """Which past assistant messages carry their reasoning back to the provider."""

    NEVER = "never"
    TOOL_CALLS = "tool_calls"
    ALWAYS = "always"


class ThinkingField(StrEnum):
    """How a thinking level is asked for; `none` sends nothing."""

    NONE = "none"
    EFFORT = "reasoning_effort"
    NESTED_EFFORT = "reasoning.effort"
    TOGGLE = "thinking.type"


class WireRules(Struct, frozen=True):
    """The differences between OpenAI-compatible servers that we have to respect."""

    max_tokens_field: str = "max_tokens"
    replay: ReasoningReplay = ReasoningReplay.NEVER
    reasoning_field: str = "reasoning_content"
    thinking: ThinkingField = ThinkingField.NONE


class LearnedRule(Struct, frozen=True):
    """A rule that a provider's refusal taught us. `evidence` is its sentence, `at_ms` wall time."""

    provider: str
    model: str
    replay: ReasoningReplay
    evidence: str
    at_ms: int
    reasoning_field: str = "reasoning_content"


# By host, because the same service is reached under many provider names. Sources: each provider's
# API reference for chat completions (DeepSeek and Moonshot: thinking with tool calls).
_BY_HOST: tuple[tuple[str, WireRules], ...] = (
    (
        "api.openai.com",
        WireRules(max_tokens_field="max_completion_tokens", thinking=ThinkingField.EFFORT),
    ),
    (
        "openai.azure.com",
        WireRules(max_tokens_field="max_completion_tokens", thinking=ThinkingField.EFFORT),
    ),
    (
        "openrouter.ai",
        WireRules(reasoning_field="reasoning", thinking=ThinkingField.NESTED_EFFORT),
    ),
    (
        "api.deepseek.com",
        WireRules(replay=ReasoningReplay.TOOL_CALLS, thinking=ThinkingField.TOGGLE),
    ),
    ("moonshot.ai", WireRules(replay=ReasoningReplay.TOOL_CALLS)),
    ("moonshot.cn", WireRules(replay=ReasoningReplay.TOOL_CALLS)),
    ("volces.com", WireRules(thinking=ThinkingField.TOGGLE)),
    ("api.z.ai", WireRules(thinking=ThinkingField.TOGGLE)),
)


def default_rules(ref: ModelRef) -> WireRules:
    """The rules a model starts with; unknown hosts get the plainest form."""
    host = (urlsplit(ref.base_url or "").hostname or "").lower()
    for suffix, rules in _BY_HOST:
        if host == suffix or host.endswith("." + suffix):
            return rules
    return WireRules()


_FIELD = late(r"\breasoning_content\b|\breasoning\b(?![._])|\bthinking\b(?![.])", re.I)
_MISSING = late(
    r"missing|must be (passed|provided|included|sent)|required|must (have|include)|必须|缺少", re.I
)
_FORBIDDEN = late(
    r"not (allowed|permitted|supported|accepted|expected)|unexpected|unrecogni[sz]ed|unknown"
    r"|unsupported|extra|additional propert|must not|should not|do not|cannot|remove|不支持|不允许",
    re.I,
)


def next_replay(current: ReasoningReplay, evidence: str) -> ReasoningReplay | None:
    """The rule to try after a 400 whose text is `evidence`; None when it is about something else.

    The text is the provider's own error message, never a message body.
    """
    if not _FIELD.search(evidence):
        return None
    if current is not ReasoningReplay.NEVER and _FORBIDDEN.search(evidence):
        return ReasoningReplay.NEVER
    if _MISSING.search(evidence):
        if current is ReasoningReplay.NEVER:
            return ReasoningReplay.TOOL_CALLS
        if current is ReasoningReplay.TOOL_CALLS:
            return ReasoningReplay.ALWAYS
    return None


_NAMED = late(r"\breasoning_content\b|(?<=[`'\".])reasoning(?=[`'\"])|\breasoning(?= field)")


def next_field(current: str, evidence: str) -> str:
    """The field that a provider demands the reasoning in; the current one when it names none."""
    named = _NAMED.search(evidence)
    return named[0] if named is not None and _MISSING.search(evidence) else current


def next_rules(current: WireRules, evidence: str) -> WireRules | None:
    """The rules to try after a 400; None when it teaches nothing about reasoning."""
    replay = next_replay(current.replay, evidence)
    if replay is ReasoningReplay.NEVER:
        return replace(current, replay=replay)
    field = next_field(current.reasoning_field, evidence)
    if field != current.reasoning_field and current.replay is not ReasoningReplay.NEVER:
        return replace(current, reasoning_field=field)  # it was sent, under the wrong name
    return None if replay is None else replace(current, replay=replay, reasoning_field=field)


class RuleBook:
    """Rules in force for each model. Lives as long as the engine; a model never flips back."""

    def __init__(self) -> None:
        self._learned: dict[tuple[str, str, str], LearnedRule] = {}
        self._tried: dict[tuple[str, str, str], set[WireRules]] = {}

    def rules(self, ref: ModelRef) -> WireRules:
        """Default rules of the provider with what was learned laid over them."""
        rules = default_rules(ref)
        learned = self._learned.get(_key(ref))
        if learned is None:
            return rules
        return replace(rules, replay=learned.replay, reasoning_field=learned.reasoning_field)

    def learn(
        self, ref: ModelRef, used: WireRules, error: ModelError, evidence: str, now_ms: int
    ) -> bool:
        """Take a lesson from a refused request that was sent under `used`.

        True when another attempt, encoded anew, makes sense: once for each rule and model.
        """
        if error.status not in (400, 422):
            return False
        wanted = next_rules(used, evidence)
        tried = self._tried.setdefault(_key(ref), set())
        tried.add(used)
        if wanted is None or wanted in tried:
            return False
        self._learned[_key(ref)] = LearnedRule(
            ref.provider, ref.id, wanted.replay, evidence, now_ms, wanted.reasoning_field
        )
        return True

    def learned(self) -> tuple[LearnedRule, ...]:
        """Everything learned so far, oldest first."""
        return tuple(sorted(self._learned.values(), key=lambda rule: rule.at_ms))


def _key(ref: ModelRef) -> tuple[str, str, str]:
    return ref.provider, ref.id, ref.base_url or ""
