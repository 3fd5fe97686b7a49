"""Keeps a request inside the model's window, in memory, before every call.

Numbers of the tool result guard: agent digest §3.5. As long as nothing summarises old turns,
whole turns are left out, oldest first, when even that is not enough; the caller says so to the
person. Pairing is repaired afterwards. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.agent.context.tokens import CHARS_PER_TOKEN, estimate
from claw_engine.models.base import Turn
from claw_engine.parts import Part

RESULT_WEIGHT = 2
"""Tool output is dense: about two characters a token, so each counts double."""

BUDGET_SHARE = 0.75
SINGLE_SHARE = 0.5
FLOOR_CHARS = 1024
NEWLINE_SHARE = 0.7
TRUNCATED = "\n[shortened: the output was larger than the context allows]"
CLEARED = "[old tool output removed to make room]"

HARD_SHARE = 0.9
"""Share of the window, in estimated tokens, above which old turns are left out …"""
KEEP_SHARE = 0.6
"""… down to this share."""


class Fitted(Struct, frozen=True):
    """Turns that fit, and what it took: counts of results shortened or cleared, turns left out."""

    turns: list[Turn]
    truncated: int = 0
    cleared: int = 0
    left_out: int = 0


def fit(
    turns: Sequence[Turn], window: int, fixed_chars: int = 0, fixed_tokens: int = 0,
    count: Callable[[Part], int] | None = None,
) -> Fitted:  # fmt: skip
    """Fits `turns` beside system prompt and tools (`fixed_*`) into `window` tokens.

    `count` gives the estimated tokens of a part, for whoever remembers them.
    """
    out, truncated = _truncate(turns, window)
    chars = results = 0
    for turn in out:
        size = _chars(turn)
        chars += size
        if turn.role == "tool":
            results += size
    out, cleared = _clear(out, window, fixed_chars + chars + (RESULT_WEIGHT - 1) * results)
    # Tokens never outnumber UTF-8 bytes and rarely exceed characters: skip the exact sum if safe.
    left_out = 0
    if cleared or fixed_tokens + chars > window * HARD_SHARE:
        out, left_out = _leave_out(out, window, fixed_tokens, count or _estimated)
    return Fitted(out, truncated, cleared, left_out)


def single_limit(window: int) -> int:
    """Characters one tool result may keep."""
    return max(FLOOR_CHARS, int(window * RESULT_WEIGHT * SINGLE_SHARE)) // RESULT_WEIGHT


def truncate(text: str, limit: int) -> str:
    """`text` cut to `limit` characters with a notice, at a line end if one is near."""
    if len(text) <= limit:
        return text
    budget = max(0, limit - len(TRUNCATED))
    newline = text.rfind("\n", 0, budget)
    return text[: newline if newline > budget * NEWLINE_SHARE else budget] + TRUNCATED


def _truncate(turns: Sequence[Turn], window: int) -> tuple[list[Turn], int]:
    limit = single_limit(window)
    out, count = list(turns), 0
    for i, turn in enumerate(out):
        if turn.role == "tool" and any(len(part.text) > limit for part in turn.parts):
            out[i] = _with_text(turn, [truncate(part.text, limit) for part in turn.parts])
            count += 1
    return out, count


def _clear(turns: list[Turn], window: int, weight: int) -> tuple[list[Turn], int]:
    budget = max(FLOOR_CHARS, int(window * CHARS_PER_TOKEN * BUDGET_SHARE))
    excess = weight - budget
    count = 0
    for i, turn in enumerate(turns):
        if excess <= 0:
            break
        freed = _weight(turn) - RESULT_WEIGHT * len(CLEARED) * len(turn.parts)
        if turn.role == "tool" and freed > 0:
            turns[i] = _with_text(turn, [CLEARED] * len(turn.parts))
            excess -= freed
            count += 1
    return turns, count


def _leave_out(
    turns: list[Turn], window: int, fixed_tokens: int, count: Callable[[Part], int]
) -> tuple[list[Turn], int]:
    sizes = [_tokens(turn, count) for turn in turns]
    total = fixed_tokens + sum(sizes)
    if total <= window * HARD_SHARE:
        return turns, 0
    users = [i for i, turn in enumerate(turns) if turn.role == "user"]
    cut = 0
    for start in users[1:]:
        if total <= window * KEEP_SHARE:
            break
        total -= sum(sizes[cut:start])
        cut = start
    return turns[cut:], cut


def _with_text(turn: Turn, texts: list[str]) -> Turn:
    parts = tuple(replace(p, text=t) for p, t in zip(turn.parts, texts, strict=True))
    return replace(turn, parts=parts)


def _chars(turn: Turn) -> int:
    # A loop, not a sum over a generator: this runs for every turn of the talk before every call.
    chars = 0
    for part in turn.parts:
        chars += len(part.text)
    for call in turn.tool_calls:
        chars += len(call.arguments.text)
    return chars


def _weight(turn: Turn) -> int:
    return _chars(turn) * (RESULT_WEIGHT if turn.role == "tool" else 1)


def _tokens(turn: Turn, count: Callable[[Part], int]) -> int:
    return sum(map(count, turn.parts)) + sum(count(call.arguments) for call in turn.tool_calls)


def _estimated(part: Part) -> int:
    return estimate(part.text)
