"""Texts as they may leave the store: secrets hidden first, then cut, compared or searched.

Plain functions over plain values, so that the worker process can do them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from claw_engine.config.redact import HIDDEN, Redactor
from claw_engine.config.secret_names import is_secret_name
from claw_engine.trace.compare import Line, line_diff

AROUND_CHARS = 60
"""Characters shown before and after a match."""


def hidden(texts: Sequence[str], redactor: Redactor) -> list[str]:
    """Each text without its secrets."""
    return [redactor.text(text) for text in texts]


def values(value: object, redactor: Redactor) -> object:
    """A JSON value with secrets hidden in all of its texts, and under names that tell them."""
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Mapping):
        return {
            key: HIDDEN
            if isinstance(item, str) and item and is_secret_name(str(key))
            else values(item, redactor)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [values(item, redactor) for item in value]
    return value


def diffs(
    texts: Sequence[tuple[str, str]], redactor: Redactor, most: int
) -> tuple[list[list[Line]], bool]:
    """The lines of each pair that differ, `most` in all; whether some are missing."""
    out: list[list[Line]] = []
    cut = False
    for old, new in texts:
        lines, more = line_diff(redactor.text(old), redactor.text(new), most)
        out.append(lines)
        most -= len(lines)
        cut = cut or more
    return out, cut


class Match(Struct, frozen=True):
    """A place where a text was found; `offset` in characters of the text without secrets."""

    place: int
    offset: int
    before: str
    match: str
    after: str


def search(
    texts: Sequence[str], wanted: str, redactor: Redactor, most: int
) -> tuple[list[Match], int, int]:
    """The first `most` matches, how many there are, and in how many texts."""
    found: list[Match] = []
    total = places = 0
    small = wanted.lower()
    for place, text in enumerate(texts):
        clean = redactor.text(text)
        low = clean.lower()
        # Where lower case is longer than the letter itself, places are told by the exact text.
        inside, needle = (low, small) if len(low) == len(clean) else (clean, wanted)
        before = total
        start = inside.find(needle)
        while start >= 0:
            total += 1
            if len(found) < most:
                end = start + len(needle)
                found.append(
                    Match(
                        place,
                        start,
                        clean[max(0, start - AROUND_CHARS) : start],
                        clean[start:end],
                        clean[end : end + AROUND_CHARS],
                    )
                )
            start = inside.find(needle, start + len(needle))
        places += total > before
    return found, total, places
