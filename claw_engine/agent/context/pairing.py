"""The last step before the wire: every tool call has exactly its result, and nothing else has.

Runs after every trim, so that no cut can part a call from its result (cases TR-01, TR-03).
Pure; knows no transcript and no provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from claw_engine.models.base import Turn, WireToolCall
from claw_engine.parts import Part, PartKind

LOST_RESULT = "The result of this call was lost before it was recorded; its effect is unknown."


def repair(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Turns that a strict provider accepts.

    A result belongs to the nearest assistant turn before it; results are moved right behind their
    call in call order, missing ones are stood in for by an error, orphans and duplicates go.
    Empty turns go; neighbours of one speaker are merged.
    """
    if _sound(turns):
        return tuple(turns)
    return tuple(_merge(_pair([turn for turn in turns if _says_something(turn)])))


def _sound(turns: Sequence[Turn]) -> bool:
    """Whether a talk of words alone needs nothing: the common one, before every call."""
    last = ""
    for turn in turns:
        role = turn.role
        if role == last or role == "tool" or turn.tool_calls:
            return False
        last = role
        for part in turn.parts:
            if part.text and not part.text.isspace():
                break
        else:
            return False
    return True


def _says_something(turn: Turn) -> bool:
    if turn.role == "tool":
        return bool(turn.tool_call_id)
    if turn.tool_calls:
        return True
    for part in turn.parts:  # noqa: SIM110 - any() costs twice as much, for every turn of the talk
        if part.text and not part.text.isspace():
            return True
    return False


def _pair(turns: Sequence[Turn]) -> Iterable[Turn]:
    at = 0
    while at < len(turns):
        turn = turns[at]
        at += 1
        if turn.role == "tool":
            continue
        if not turn.tool_calls:
            yield turn
            continue
        end = at
        while end < len(turns) and turns[end].role != "assistant":
            end += 1
        yield from _with_results(turn, turns[at:end], at)
        at = end


def _with_results(turn: Turn, following: Sequence[Turn], at: int) -> Iterable[Turn]:
    results: dict[str, Turn] = {}
    for other in following:
        if other.role == "tool":
            results.setdefault(other.tool_call_id, other)
    calls = {call.id: call for call in reversed(turn.tool_calls) if call.id}
    ordered = tuple(call for call in turn.tool_calls if calls.get(call.id) is call)
    if not ordered and not any(part.text.strip() for part in turn.parts):
        yield from (other for other in following if other.role == "user")
        return
    yield turn if len(ordered) == len(turn.tool_calls) else replace(turn, tool_calls=ordered)
    for call in ordered:
        yield results.get(call.id) or _lost(call, at)
    yield from (other for other in following if other.role == "user")


def _lost(call: WireToolCall, at: int) -> Turn:
    part = Part(f"repair:{at}:{call.id}", PartKind.TOOL_RESULT, "repair", LOST_RESULT, call.name)
    return Turn("tool", (part,), tool_call_id=call.id, is_error=True)


def _merge(turns: Iterable[Turn]) -> list[Turn]:
    merged: list[Turn] = []
    for turn in turns:
        last = merged[-1] if merged else None
        if last is None or last.role != turn.role or turn.role == "tool" or last.tool_calls:
            merged.append(turn)
            continue
        merged[-1] = replace(
            last,
            parts=last.parts + turn.parts,
            reasoning=last.reasoning + turn.reasoning,
            tool_calls=turn.tool_calls,
        )
    return merged
