"""pydantic's findings in an operator's words: what was expected, what stands there, how to mend.

A value that may be a secret is described, not repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from claw_engine.config.problems import KeyPath
from claw_engine.config.secret_names import is_secret_name
from claw_engine.config.unknown import nearest_name

_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "value_error": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text in quotes",
    "string_too_short": "a text that is not empty",
    "tuple_type": "a list: [ … ]",
    "list_type": "a list: [ … ]",
    "dict_type": "an object: { … }",
    "model_type": "an object: { … }",
}
_GOT = {
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "NoneType": "null",
}
_LIMITS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


SHOWN_CHARS = 40


def explain(
    error: ValidationError, section: str = "", secrets: Collection[str] = ()
) -> Iterator[tuple[KeyPath, str]]:
    """Path below the section and a sentence, for each finding.

    `secrets` are values that came from outside the file (variables): none of them is repeated.
    """
    for detail in error.errors(include_url=False):
        value = detail["input"]
        named = any(is_secret_name(str(step)) for step in (section, *detail["loc"]))
        told = any(secret and secret in str(value) for secret in secrets)
        yield detail["loc"], _sentence(detail, show=not (named or told))


def _sentence(detail: ErrorDetails, *, show: bool) -> str:
    if detail["type"] == "missing":
        return f"{detail['loc'][-1]} is required here: add it"
    mend = "change the value, or remove the key to use the default"
    return f"expected {_expected(detail)}, found {_found(detail['input'], show)}; {mend}"


def _expected(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "literal_error":
        return f"one of {context['expected']}{_did_you_mean(detail)}"
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return f"a number {words} {context[key]}"
    return _EXPECTED.get(kind, "another kind of value")


def _did_you_mean(detail: ErrorDetails) -> str:
    choices = tuple(part.strip(" '") for part in _choices(detail))
    near = nearest_name(str(detail["input"]), choices)
    return f" (did you mean {near!r}?)" if near else ""


def _choices(detail: ErrorDetails) -> list[str]:
    return str(detail.get("ctx", {}).get("expected", "")).replace(" or ", ",").split(",")


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
