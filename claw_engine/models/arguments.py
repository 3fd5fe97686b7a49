"""Reading a model's tool-call arguments: a JSON object or a reason why not.

The one repair is a raw control character inside a string. Nothing is completed or guessed, so a
cut-off command can never run. Knows no tool.
"""

from __future__ import annotations

import json
from typing import NoReturn

_WHITESPACE = " \t\r\n"


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_LOOSE = json.JSONDecoder(strict=False, parse_constant=_reject_constant)


def parse_arguments(raw: str) -> tuple[dict[str, object] | None, str]:
    """Arguments of a call, or None and a sentence that the model can act on.

    An empty text means no arguments. Raw newlines and tabs inside strings are accepted (many
    local models write them); everything else must be one complete JSON object.
    """
    text = raw.strip(_WHITESPACE)
    if not text:
        return {}, ""
    try:
        value, end = _LOOSE.raw_decode(text)
    except (ValueError, RecursionError) as error:
        return None, _explain(text, error)
    if not isinstance(value, dict):
        return None, (
            f"Tool arguments must be one JSON object, but a {_kind(value)} arrived: "
            f"{_excerpt(text)}. Call the tool again with an object."
        )
    if text[end:].strip(_WHITESPACE):
        return None, (
            "Tool arguments must be exactly one JSON object, but more text follows it: "
            f"{_excerpt(text[end:])}. Make one call per object."
        )
    problem = _surrogate_problem(text, value)
    return (None, problem) if problem else (value, "")


def replay_arguments(raw: str) -> str:
    """What history may send back to a provider: always the text of a JSON object.

    Valid text is returned as it came, repaired text is written anew, anything else becomes `{}`
    (the error result beside it tells the model what was wrong).
    """
    if is_json_object(raw):
        return raw
    value, _ = parse_arguments(raw)
    return json.dumps(value, ensure_ascii=False) if value else "{}"


def is_json_object(text: str) -> bool:
    """True when `text` is strictly one JSON object, as a strict provider demands."""
    try:
        return isinstance(json.loads(text, parse_constant=_reject_constant), dict)
    except (ValueError, RecursionError):
        return False


def _surrogate_problem(text: str, value: object) -> str:
    # An unpaired \\ud8xx escape would turn into another byte on its way to a shell.
    if "\\ud" not in text.lower():
        return ""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return (
            "Tool arguments hold half of a surrogate pair (\\ud800-\\udfff), which is no "
            "character. Call the tool again with valid Unicode."
        )
    return ""


def _explain(text: str, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "Tool arguments are nested too deeply. Call the tool again with a flat object."
    if _is_cut_off(text, error):
        return (
            "Tool arguments were cut off before the JSON object ended, so nothing was run: "
            f"…{text[-40:]!r}. Call the tool again with the complete object."
        )
    reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return (
        f"Tool arguments are not valid JSON ({reason}): {_excerpt(text)}. "
        "Call the tool again with one JSON object and no trailing commas."
    )


def _is_cut_off(text: str, error: Exception) -> bool:
    if not isinstance(error, json.JSONDecodeError) or not text.startswith("{"):
        return False
    return error.pos >= len(text) or error.msg.startswith("Unterminated string")


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")


def _kind(value: object) -> str:
    match value:
        case list():
            return "list"
        case str():
            return "string"
        case bool():
            return "boolean"
        case None:
            return "null"
        case _:
            return "number"
