"""The configuration's shape as JSON Schema, for clients that make forms of it.

Made from the sections that are read; names that only OpenClaw reads are open. Off the start path.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping

import msgspec

from claw_engine.config.read import SECTIONS
from claw_engine.config.rules import effect_of
from claw_engine.config.secret_names import is_secret_name
from claw_engine.errors import InvalidRequest

Json = dict[str, object]
_STATED = "(stated)"


def schema(version: str, now_ms: int) -> Json:
    """The `config.schema` payload."""
    whole = _whole()
    stamp = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC)
    return {
        "schema": whole,
        "uiHints": {path: {"sensitive": True} for path in _secrets(whole, whole, "")},
        "version": version,
        "generatedAt": stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def lookup(path: str) -> Json:
    """The `config.schema.lookup` payload for one dotted path. Raises InvalidRequest."""
    whole = _whole()
    here: object = whole
    steps = path.split(".")
    for number, step in enumerate(steps):
        here = _below(whole, here, step)
        if here is None:
            at = ".".join(steps[: number + 1])
            raise InvalidRequest(f"config schema path not found: {at}")
    found = _resolved(whole, here)
    properties = found.get("properties")
    names = list(properties) if isinstance(properties, Mapping) else []
    return {
        "path": path,
        "schema": {key: value for key, value in found.items() if key != "properties"},
        "reloadKind": effect_of(tuple(steps)).value,
        "hint": {"sensitive": True} if is_secret_name(steps[-1]) else None,
        "children": [
            {"key": name, "path": f"{path}.{name}",
             "reloadKind": effect_of((*steps, name)).value}
            for name in names
        ],
    }  # fmt: skip


def _whole() -> Json:
    kinds = list(SECTIONS.items())
    refs, parts = msgspec.json.schema_components(
        [kind for _, kind in kinds],
        schema_hook=lambda _: {"title": "any"},
        ref_template="#/$defs/{name}",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {name: ref for (name, _), ref in zip(kinds, refs, strict=True)},
        "additionalProperties": True,
        "$defs": {name: _clean(part) for name, part in parts.items()},
    }


def _clean(value: object) -> object:
    """Without our own bookkeeping; what nobody may state is no default either."""
    if isinstance(value, Mapping):
        return {key: _clean(inner) for key, inner in value.items() if key != _STATED}
    return [_clean(inner) for inner in value] if isinstance(value, list) else value


def _resolved(whole: Json, value: object) -> Json:
    """The object a reference or an alternative stands for."""
    if not isinstance(value, dict):
        return {}
    ref = value.get("$ref")
    if isinstance(ref, str):
        defs = whole["$defs"]
        assert isinstance(defs, dict)  # made by _whole
        return _resolved(whole, defs[ref.rpartition("/")[2]])
    options = value.get("anyOf")
    if isinstance(options, list):
        objects = [_resolved(whole, option) for option in options]
        return next((one for one in objects if one.get("type") in ("object", "array")), value)
    return value


def _below(whole: Json, value: object, step: str) -> object | None:
    found = _resolved(whole, value)
    if found.get("type") == "array":
        return found.get("items") if step in ("*", "[]") or step.isdecimal() else None
    properties = found.get("properties")
    if isinstance(properties, Mapping) and step in properties:
        below: object = properties[step]
        return below
    more = found.get("additionalProperties")
    return more if isinstance(more, dict) else None


def _secrets(whole: Json, value: object, path: str, depth: int = 0) -> Iterator[str]:
    """Paths of leaves whose names say that they are secret; `*` is any name, `[]` any item."""
    found = _resolved(whole, value)
    if depth > 12:
        return
    properties = found.get("properties")
    steps = list(properties.items()) if isinstance(properties, Mapping) else []
    if isinstance(found.get("additionalProperties"), dict):
        steps.append(("*", found["additionalProperties"]))
    if isinstance(found.get("items"), dict):
        steps.append(("[]", found["items"]))
    for name, below in steps:
        at = f"{path}.{name}" if path else str(name)
        if is_secret_name(str(name)):
            yield at
        else:
            yield from _secrets(whole, below, at, depth + 1)
