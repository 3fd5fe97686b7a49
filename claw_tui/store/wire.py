"""Reads values of unknown shape from the wire. Never raises: a foreign gateway may leave
fields out or send other types, and the console shows what it can."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TypeAlias

Json: TypeAlias = Mapping[str, object]
EMPTY: Json = {}


def obj(raw: object) -> Json:
    """`raw` as an object, or an empty one."""
    return raw if isinstance(raw, dict) else EMPTY


def objs(raw: object) -> list[Json]:
    """The objects of a list; anything else in it is left out."""
    return [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []


def text(raw: Json, key: str, default: str = "") -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else default


def texts(raw: Json, key: str) -> tuple[str, ...]:
    value = raw.get(key)
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()


def num(raw: Json, key: str, default: int = 0) -> int:
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        return default
    return int(value)


def _finite(value: float) -> bool:
    return isinstance(value, int) or isfinite(value)


def maybe_num(raw: Json, key: str) -> int | None:
    value = raw.get(key)
    return num(raw, key) if isinstance(value, int | float) and _finite(value) else None


def flag(raw: Json, key: str, default: bool = False) -> bool:
    value = raw.get(key)
    return value if isinstance(value, bool) else default
