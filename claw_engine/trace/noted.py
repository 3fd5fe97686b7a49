"""What is noted on the way of a message: references only; a writer makes rows of it later. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from claw_engine.protocol.trace import TraceEvent
from claw_engine.trace.ports import Call, CallEnd, PieceLike

Tokens: TypeAlias = Mapping[str, int]
"""Estimated tokens by part id."""
Sizes: TypeAlias = Callable[[PieceLike], Tokens]


class Change(Struct, frozen=True):
    """A body against the one before it in its session: `prefix` pieces of its beginning and
    `suffix` of its end are the same. `sizes` tells the tokens of a piece's parts."""

    pieces: Sequence[PieceLike]
    prefix: int
    suffix: int
    sizes: Sizes


def overlap(old: Sequence[PieceLike], new: Sequence[PieceLike]) -> tuple[int, int]:
    """How many pieces at the beginning and at the end are the same. Nearly all of it in C."""
    most = min(len(old), len(new))
    head = 0
    # Pieces without parts are made anew for each request.
    while head < most and old[head] is not new[head] and _same(old[head], new[head]):
        head += 1
    tail = 0
    while tail < most - head and _same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    low, high = head, most - tail
    if old[head:high] == new[head:high]:  # compared by identity: the usual case in one look
        low = high
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low, tail


def _same(old: PieceLike, new: PieceLike) -> bool:
    return old is new or (not old.parts and not new.parts and old.data == new.data)


class Begun(Struct, frozen=True):
    """A call that was handed to the wire."""

    call: Call
    body: bytes
    change: Change


class Ended(Struct, frozen=True):
    run_id: str
    call_id: str
    end: CallEnd


Item: TypeAlias = TraceEvent | Begun | Ended
