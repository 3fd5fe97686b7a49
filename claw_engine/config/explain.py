"""Faults of a section in an operator's words: what was expected, what stands there, how to mend.

A value that may be a secret is described, not repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from claw_engine.config.problems import KeyPath
from claw_engine.config.secret_names import is_secret_name
from claw_engine.config.unknown import nearest_name
from claw_engine.shapes import Fault

_GOT = {
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "NoneType": "null",
}

SHOWN_CHARS = 40


def explain(
    faults: Iterable[Fault], section: str = "", secrets: Collection[str] = ()
) -> Iterator[tuple[KeyPath, str]]:
    """Path below the section and a sentence, for each fault.

    `secrets` are values that came from outside the file (variables): none of them is repeated.
    """
    for fault in faults:
        named = any(is_secret_name(str(step)) for step in (section, *fault.path))
        told = any(secret and secret in str(fault.found) for secret in secrets)
        yield fault.path, _sentence(fault, show=not (named or told))


def _sentence(fault: Fault, *, show: bool) -> str:
    if fault.kind == "missing":
        return f"{fault.path[-1]} is required here: add it"
    if fault.kind == "rule":
        return fault.expected
    mend = "change the value, or remove the key to use the default"
    expected = fault.expected + (_did_you_mean(fault) if show else "")
    return f"expected {expected}, found {_found(fault.found, show)}; {mend}"


def _did_you_mean(fault: Fault) -> str:
    near = nearest_name(str(fault.found), fault.choices) if fault.choices else None
    return f" (did you mean {near!r}?)" if near else ""


def _found(value: object, show: bool) -> str:
    kind = _GOT.get(type(value).__name__, "something else")
    if not show:
        return kind
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str() if len(value) <= SHOWN_CHARS:
            return f"the text {value!r}"
        case _:
            return kind
