"""Where two requests begin to differ: up to there a provider's prompt cache serves the later.

Parts of one engine are the same objects while nothing changed, so a long talk costs one look each.
The trace store does the same over what it kept (trace/views.py). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from claw_engine.models.base import Encoded
from claw_engine.parts import Part, PartKind


class Break(Struct, frozen=True):
    """`part` is the first of the later request that is not as before, or, when the later one only
    lost its end, the first that it lost; `kept` counts the parts before it, in cache order."""

    part: Part
    kept: int

    def sentence(self) -> str:
        return f"cache broke at {self.part.name or self.part.id}"


def cache_break(before: Encoded, after: Encoded) -> Break | None:
    """Where the cache of one request ends for a later one; None = it only grew, or is the same."""
    return first_change(in_cache_order(before), in_cache_order(after))


def in_cache_order(encoded: Encoded) -> list[Part]:
    """The parts that are on the wire, tools first: providers put them in front of everything."""
    sent = [
        part
        for piece in encoded.pieces
        for ids in ({span.part_id for span in piece.spans},)
        for part in piece.parts
        if part.id in ids
    ]
    return sorted(sent, key=lambda part: part.kind is not PartKind.TOOL)


def first_change(before: Sequence[Part], after: Sequence[Part]) -> Break | None:
    """The first part that is not as before; None if all of `before` stands at the beginning."""
    for kept, old in enumerate(before):
        if kept == len(after):
            return Break(old, kept)
        new = after[kept]
        if new is not old and (new.kind is not old.kind or new.text != old.text):
            return Break(new, kept)
    return None
