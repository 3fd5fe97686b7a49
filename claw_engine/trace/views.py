"""One call as a person looks at it: parts, what is new, what grew, where a cache broke. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from claw_engine.trace.contents import ENVELOPE, Contents, StoredPart
from claw_engine.trace.records import PartRow, SourceDelta

TOOL = "tool"


class View(Struct, frozen=True):
    """`parts` in wire order, the envelope last; see docs/trace.md."""

    parts: tuple[PartRow, ...]
    growth: tuple[SourceDelta, ...]
    cache_break: int | None


def view(now: Contents, before: Contents | None, *, same_model: bool = True) -> View:
    """What a body is made of, against the one before it in its session."""
    had = {(part.id, part.hash) for part in before.parts} if before is not None else set()
    cached, broke = reused(now.parts, before.parts if before is not None and same_model else ())
    rows = tuple(
        PartRow(
            part.id, part.kind, part.name, part.source, part.bytes, part.tokens, part.hash.hex(),
            place in cached, (part.id, part.hash) not in had, part.start, part.end,
        )
        for place, part in enumerate(now.parts)
    )  # fmt: skip
    envelope = PartRow(
        ENVELOPE, ENVELOPE, ENVELOPE, "wire", now.envelope, 0, "", False, before is None, 0, 0
    )
    grown = growth(before.parts, now.parts) if before is not None else ()
    return View((*rows, envelope), grown, broke)


def reused(now: Sequence[StoredPart], before: Sequence[StoredPart]) -> tuple[set[int], int | None]:
    """The places of what a provider can take from its cache, and where that ends too early.

    Providers put the tools in front of everything, wherever they stand in the body; from there
    on the same beginning counts. None: nothing changed, there is only more.
    """
    if not before:
        return set(), None
    places = _in_cache_order(now)
    old = _in_cache_order(before)
    cached: set[int] = set()
    for place, was in zip(places, old, strict=False):
        if now[place].hash != before[was].hash or now[place].kind != before[was].kind:
            return cached, place
        cached.add(place)
    # Shorter than before: a conversation that was cut at its end keeps what it has.
    return cached, None


def _in_cache_order(parts: Sequence[StoredPart]) -> list[int]:
    return sorted(range(len(parts)), key=lambda place: (parts[place].kind != TOOL, place))


def growth(before: Sequence[StoredPart], now: Sequence[StoredPart]) -> tuple[SourceDelta, ...]:
    """What became more or less by source, the largest change first."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for sign, parts in ((-1, before), (1, now)):
        for part in parts:
            total = sums.setdefault((part.kind, part.source, part.name), [0, 0])
            total[0] += sign * part.bytes
            total[1] += sign * part.tokens
    rows = [
        SourceDelta(source, kind, name or source, *total)
        for (kind, source, name), total in sums.items()
        if any(total)
    ]
    return tuple(sorted(rows, key=lambda row: (-abs(row.tokens), -abs(row.bytes))))
