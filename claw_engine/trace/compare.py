"""Two bodies side by side: parts by hash, and lines only inside those that changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

State: TypeAlias = Literal["same", "changed", "added", "removed"]
Line: TypeAlias = tuple[str, str]
"""What is with it (" ", "+", "-", "@" for a gap) and its text."""

AROUND = 3
"""Lines shown around a change."""
LINE_CHARS = 2_000
MOST_STEPS = 4_000_000
"""Lines of one text times lines of the other; beyond, no common ones are looked for."""


class Side(Struct, frozen=True):
    """A part as comparing sees it."""

    id: str
    kind: str
    hash: bytes


class Pair(Struct, frozen=True):
    """A part of one body and its counterpart: places in `a` and `b`."""

    state: State
    a: int | None
    b: int | None


def pairs(a: Sequence[Side], b: Sequence[Side]) -> list[Pair]:
    """In the order of `b`, with removed parts where they were."""
    by_id = {side.id: place for place, side in enumerate(a)}
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for place, side in enumerate(b):
        found = by_id.get(side.id)
        if found is not None and found not in taken and a[found].kind == side.kind:
            partner[place] = found
            taken.add(found)
    # The same text under another name: a talk that was copied, a file that was renamed.
    free: dict[tuple[str, bytes], list[int]] = {}
    for place in reversed(range(len(a))):
        if place not in taken:
            free.setdefault((a[place].kind, a[place].hash), []).append(place)
    for place, side in enumerate(b):
        if place not in partner and (left := free.get((side.kind, side.hash))):
            partner[place] = left.pop()
            taken.add(partner[place])
    where = {old: new for new, old in partner.items()}
    gone: dict[int, list[int]] = {}
    after = -1
    for place in range(len(a)):
        if place in where:
            after = where[place]
        else:
            gone.setdefault(after, []).append(place)
    return list(_in_order(a, b, partner, gone))


def _in_order(
    a: Sequence[Side], b: Sequence[Side], partner: dict[int, int], gone: dict[int, list[int]]
) -> Iterator[Pair]:
    for place in range(-1, len(b)):
        if place >= 0:
            old = partner.get(place)
            if old is None:
                yield Pair("added", None, place)
            else:
                yield Pair("same" if a[old].hash == b[place].hash else "changed", old, place)
        for removed in gone.get(place, ()):
            yield Pair("removed", removed, None)


def line_diff(old: str, new: str, most: int) -> tuple[list[Line], bool]:
    """The lines that differ with some around them, `most` at most; whether there are more."""
    before, after = old.splitlines(), new.splitlines()
    head, limit = 0, min(len(before), len(after))
    while head < limit and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < limit - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    found: list[Line] = []
    start = max(0, head - AROUND)
    if start:
        found.append(("@", f"{start} lines"))
    found += [(" ", line) for line in before[start:head]]
    found += _middle(before[head : len(before) - tail], after[head : len(after) - tail])
    found += [(" ", line) for line in before[len(before) - tail :][:AROUND]]
    if tail > AROUND:
        found.append(("@", f"{tail - AROUND} lines"))
    shown = [(sign, _short(line)) for sign, line in found[:most]]
    return shown, len(found) > most


def _middle(old: list[str], new: list[str]) -> Iterator[Line]:
    if len(old) * len(new) > MOST_STEPS:
        yield from (("-", line) for line in old)
        yield from (("+", line) for line in new)
        return
    from difflib import SequenceMatcher  # nobody else needs it

    groups = SequenceMatcher(None, old, new).get_opcodes()
    for tag, start, end, begin, stop in groups:
        if tag == "equal":
            yield from _common(old[start:end])
        else:
            yield from (("-", line) for line in old[start:end])
            yield from (("+", line) for line in new[begin:stop])


def _common(lines: list[str]) -> Iterator[Line]:
    if len(lines) <= 2 * AROUND + 1:
        yield from ((" ", line) for line in lines)
        return
    yield from ((" ", line) for line in lines[:AROUND])
    yield "@", f"{len(lines) - 2 * AROUND} lines"
    yield from ((" ", line) for line in lines[-AROUND:])


def _short(line: str) -> str:
    return line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}…"
