"""Finds keys of OpenClaw that are right and that this version does not act on. Pure.

What the sections read is acted on, but for the few places named here. Values do not matter.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Union, get_args, get_origin

from msgspec.structs import fields

from claw_engine.config.known_keys import known_keys
from claw_engine.config.problems import KeyPath
from claw_engine.config.sections.base import Section

IDLE = frozenset(
    {
        "agents.defaults.model.fallbacks",
        "agents.list.[].agentDir",
        "agents.list.[].identity.emoji",
        "agents.list.[].identity.name",
        "agents.list.[].identity.theme",
        "agents.list.[].model.fallbacks",
        "agents.list.[].subagents.allowAgents",
        "logging.consoleLevel",
        "logging.file",
        "logging.redactSensitive",
        "models.mode",
        "models.providers.*.authHeader",
        "models.providers.*.models.[].compat",
        "session.parentForkMaxTokens",
    }
)
"""Read for their types only. A test looks whether something has begun to use them."""

NOT_SETTINGS = frozenset({"$schema", "meta", "wizard", "env", "$include"})
"""Top-level names that state nothing to act on, or that loading itself has dealt with."""


def idle_keys(raw: Mapping[str, object], sections: Mapping[str, type[Section]]) -> list[KeyPath]:
    """The outermost keys nobody acts on, in the order they are written.

    `sections` are the top-level names and what reads them. Unknown names are not among them.
    """
    found: list[KeyPath] = []
    for name, value in raw.items():
        if name in sections:
            found += _walk(value, sections[name], (name,), name)
        elif name not in NOT_SETTINGS and name in known_keys()[""]:
            found.append((name,))
    return found


def _walk(value: object, kind: object, path: KeyPath, place: str) -> Iterator[KeyPath]:
    """`kind` is the type that reads the value at `place` of the table of known keys."""
    match _inside(kind), value:
        case ("section", section), Mapping():
            assert isinstance(section, type)
            read = {field.encode_name: field.type for field in fields(section)}
            known = known_keys().get(place, frozenset())
            for key, item in value.items():
                below, here = f"{place}.{key}", (*path, key)
                if below in IDLE:
                    yield here
                elif key in read:
                    yield from _walk(item, read[key], here, below)
                elif key in known:
                    yield here
        case ("map", inner), Mapping():
            for key, item in value.items():
                yield from _walk(item, inner, (*path, key), f"{place}.*")
        case ("list", inner), list():
            for index, item in enumerate(value):
                yield from _walk(item, inner, (*path, index), f"{place}.[]")


def _inside(kind: object) -> tuple[str, object]:
    """What of a type leads further down: a section, a mapping's or a list's items; else ""."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _inside(args[0])
    if origin in (Union, types.UnionType):
        return next((found for found in map(_inside, args) if found[0]), ("", None))
    if origin is dict:
        return "map", args[1]
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return "list", args[0]
    if isinstance(kind, type) and issubclass(kind, Section):
        return "section", kind
    return "", None
