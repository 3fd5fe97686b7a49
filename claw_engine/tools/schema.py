"""Checks a tool call's arguments against the subset of JSON Schema that our tools use.

Pure. Lenient where models slip (numbers in strings, other spellings of a name), exact in what it
says back: which parameter, what was given, what is expected, and a call that would work.
It knows no tool by name; the aliases it accepts are handed in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from msgspec import Struct

_SHOWN_CHARS = 80
_INTEGER_CHARS = 18
"""Digits read from a string; longer ones are no line number, size or time of ours."""


class Checked(Struct, frozen=True):
    """Either `arguments` that fit, or `problems`, one sentence each."""

    arguments: Mapping[str, object]
    problems: tuple[str, ...]


class _Mismatch(Exception):
    pass


def check(
    parameters: Mapping[str, object],
    given: Mapping[str, object],
    aliases: Mapping[str, str] | None = None,
) -> Checked:
    """Check `given` against the object schema `parameters`.

    An alias counts only for a parameter that the schema has and the call does not give by its own
    name. A `null` for an optional parameter counts as not given. Values come back converted.
    """
    properties = _mapping(parameters.get("properties"))
    renamed = _rename(properties, given, aliases or {})
    required = [name for name in _list(parameters.get("required")) if isinstance(name, str)]
    problems: list[str] = []
    arguments: dict[str, object] = {}
    for name, value in renamed.items():
        if name not in properties:
            known = ", ".join(properties)
            problems.append(f"Unknown parameter `{name}`. Known parameters: {known}.")
            continue
        if value is None and name not in required:
            continue
        try:
            arguments[name] = _convert(_mapping(properties[name]), value)
        except _Mismatch as mismatch:
            problems.append(f"Parameter `{name}`: expected {mismatch}, got {shown(value)}.")
    missing = [name for name in required if name not in renamed]
    if missing:
        names = ", ".join(_with_aliases(name, aliases or {}) for name in missing)
        problems.insert(0, f"Missing required parameter(s): {names}.")
    return Checked(arguments, tuple(problems))


def shown(value: object) -> str:
    """A value as a model wrote it: its JSON type and its text, cut at 80 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > _SHOWN_CHARS:
        text = text[: _SHOWN_CHARS - 1] + "…"
    return f"{_type_name(value)} {text}" if value is not None else "null"


def example(parameters: Mapping[str, object]) -> dict[str, object]:
    """A call that would be accepted: the required parameters with values of the right type."""
    properties = _mapping(parameters.get("properties"))
    names = [name for name in _list(parameters.get("required")) if isinstance(name, str)]
    return {name: _sample(_mapping(properties.get(name))) for name in names}


def without_examples(value: Mapping[str, object]) -> dict[str, object]:
    """The schema without `examples`, which only our error texts use."""
    return {
        key: without_examples(item) if isinstance(item, Mapping) else item
        for key, item in value.items()
        if key != "examples"
    }


def _sample(schema: Mapping[str, object]) -> object:
    examples = _list(schema.get("examples"))
    if examples:
        return examples[0]
    options = _list(schema.get("enum"))
    if options:
        return options[0]
    samples: dict[str, object] = {"integer": 1, "number": 1, "boolean": True, "object": {}}
    samples["array"] = []
    return samples.get(str(schema.get("type")), "…")


def _rename(
    properties: Mapping[str, object], given: Mapping[str, object], aliases: Mapping[str, str]
) -> dict[str, object]:
    renamed: dict[str, object] = {}
    for name, value in given.items():
        target = aliases.get(name, name)
        if name in properties or target not in properties:
            target = name
        if target != name and (target in given or target in renamed):
            continue
        renamed[target] = value
    return renamed


def _with_aliases(name: str, aliases: Mapping[str, str]) -> str:
    others = [alias for alias, target in aliases.items() if target == name]
    return f"{name} ({' or '.join([name, *others])})" if others else name


def _convert(schema: Mapping[str, object], value: object) -> object:
    match schema.get("type"):
        case "string":
            converted: object = _string(value)
        case "integer":
            converted = _integer(value, schema)
        case "number":
            converted = _number(value, schema)
        case "boolean":
            converted = _boolean(value)
        case "object":
            converted = _object(schema, value)
        case "array":
            converted = _array(schema, value)
        case _:
            converted = value
    options = _list(schema.get("enum"))
    if options and converted not in options:
        raise _Mismatch("one of " + ", ".join(json.dumps(option) for option in options))
    return converted


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, Mapping)):
        flat = flatten_text(value)
        if flat is not None:
            return flat
    raise _Mismatch("a string")


def flatten_text(value: object) -> str | None:
    """The text of structured content (`[{"type":"text","text":…}]` and the like), or None."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        inner = value.get("text", value.get("content"))
        return None if inner is None else flatten_text(inner)
    if isinstance(value, list) and value:
        parts = [flatten_text(item) for item in value]
        if all(part is not None for part in parts):
            return "".join(part for part in parts if part is not None)
    return None


def _integer(value: object, schema: Mapping[str, object]) -> int:
    wanted = "a whole number" + _bounds(schema)
    number: int | None = None
    if isinstance(value, bool):
        pass
    elif isinstance(value, int):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, str):
        digits = value.strip()
        if len(digits) <= _INTEGER_CHARS and digits.lstrip("+-").isdecimal():
            number = _parse_int(digits)
    if number is None or not _within(schema, number):
        raise _Mismatch(wanted)
    return number


def _parse_int(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _number(value: object, schema: Mapping[str, object]) -> float:
    number: float | None = None
    if isinstance(value, bool):
        pass
    elif isinstance(value, (int, float)):
        number = value
    elif isinstance(value, str):
        try:
            number = float(value.strip())
        except ValueError:
            number = None
    if number is None or not math.isfinite(number) or not _within(schema, number):
        raise _Mismatch("a number" + _bounds(schema))
    return number


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise _Mismatch("true or false")


def _object(schema: Mapping[str, object], value: object) -> dict[str, object]:
    """An object; one that arrives as JSON text is read."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise _Mismatch("an object") from None
    if not isinstance(value, Mapping):
        raise _Mismatch("an object")
    inner = schema.get("additionalProperties")
    if not isinstance(inner, Mapping):
        return {str(key): item for key, item in value.items()}
    converted: dict[str, object] = {}
    for key, item in value.items():
        try:
            converted[str(key)] = _convert(inner, item)
        except _Mismatch as mismatch:
            raise _Mismatch(f"an object whose `{key}` is {mismatch}") from None
    return converted


def _array(schema: Mapping[str, object], value: object) -> list[object]:
    if not isinstance(value, list):
        raise _Mismatch("a list")
    items = _mapping(schema.get("items"))
    try:
        return [_convert(items, item) for item in value]
    except _Mismatch as mismatch:
        raise _Mismatch(f"a list of values that are each {mismatch}") from None


def _within(schema: Mapping[str, object], number: float) -> bool:
    low, high = schema.get("minimum"), schema.get("maximum")
    above = not isinstance(low, (int, float)) or number >= low
    return above and (not isinstance(high, (int, float)) or number <= high)


def _bounds(schema: Mapping[str, object]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f" of at least {low}"
    return f" of at most {high}" if high is not None else ""


def _type_name(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
        case Mapping():
            return "object"
    return type(value).__name__


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []
