"""Finds keys nobody reads, and the name that was probably meant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from claw_engine.config.known_keys import known_keys
from claw_engine.config.problems import KeyPath


class UnknownKey(Struct, frozen=True):
    """`path` ends in the unknown name; `nearest` is a valid name there, if one is close."""

    path: KeyPath
    nearest: str | None


def unknown_keys(raw: Mapping[str, object]) -> list[UnknownKey]:
    """All unknown keys of a configuration, in the order they are written."""
    return list(_walk(raw, (), ""))


def _walk(value: object, path: KeyPath, place: str) -> Iterator[UnknownKey]:
    allowed = known_keys().get(place)
    if allowed is None:
        return
    if isinstance(value, list):
        if "[]" in allowed:
            for index, item in enumerate(value):
                yield from _walk(item, (*path, index), _below(place, "[]"))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key in allowed:
                yield from _walk(item, (*path, key), _below(place, key))
            elif "*" in allowed:
                yield from _walk(item, (*path, key), _below(place, "*"))
            elif key != "$include":
                near = nearest_name(key, allowed) or _nearest_inside(key, place, allowed)
                yield UnknownKey((*path, key), near)


def _below(place: str, step: str) -> str:
    return f"{place}.{step}" if place else step


def nearest_name(name: str, allowed: frozenset[str] | tuple[str, ...]) -> str | None:
    """The closest valid name, ignoring case, `_` and `-`; None when nothing is close."""
    import difflib  # only for a name that is wrong

    plain = {_plain(known): known for known in sorted(allowed)}
    found = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.6)
    return plain[found[0]] if found else None


def _nearest_inside(name: str, place: str, allowed: frozenset[str]) -> str | None:
    """A valid name one level further down that is close indeed, as `section.name`."""
    import difflib  # only for a name that is wrong

    inside = {
        key: f"{step}.{key}"
        for step in sorted(allowed, reverse=True)
        for key in known_keys().get(_below(place, step), ())
        if key not in ("*", "[]") and step not in ("*", "[]")
    }
    found = difflib.get_close_matches(name, inside, n=1, cutoff=0.85)
    return inside[found[0]] if found else None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
