"""Set one value in a JSON5 text and leave every other character, comments included, alone. Pure."""

from __future__ import annotations

import json
import re

from claw_engine.config.problems import KeyPath, format_path
from claw_engine.config.spans import Span, SpanMap, scan, skip_blank

INDENT = "  "
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n\r]*|/\*(?:(?!\*/)[^\n\r])*\*/[ \t]*)?(?=\r?\n|\Z)")


class EditError(ValueError):
    """The value cannot be put there: something on the way is no object."""


def set_value(text: str, path: tuple[str, ...], value: object) -> str:
    """`text` with `value` at `path`; missing objects on the way are made.

    Raises ScanError when the text is not well-formed, EditError when the path leads through
    something that is not an object.
    """
    if not path:
        raise EditError("a path is needed")
    if not text[skip_blank(text, 0) :].strip("\ufeff \t\r\n"):
        text = text + "{}\n"
    spans = scan(text)
    existing = spans.get(path)
    if existing is not None:
        rendered = _render(value, _indent_at(text, existing.key_start))
        return text[: existing.start] + rendered + text[existing.end :]
    parent = _deepest(spans, path)
    missing = path[len(parent) :]
    for step in reversed(missing[1:]):
        value = {step: value}
    return _insert(spans, parent, missing[0], value)


def _deepest(spans: SpanMap, path: tuple[str, ...]) -> tuple[str, ...]:
    known = path[:-1]
    while known and spans.get(known) is None:
        known = known[:-1]
    span = spans.get(known)
    if span is None or spans.text[span.start] != "{":
        raise EditError(f"{format_path(known) or 'the document'} is not an object")
    return known


def _insert(spans: SpanMap, parent: KeyPath, key: str, value: object) -> str:
    text, holder = spans.text, spans.spans[parent]
    if not holder.children:
        return _insert_first(text, holder, key, value)
    last = max((spans.spans[(*parent, step)] for step in holder.children), key=lambda s: s.end)
    comma = skip_blank(text, last.end)
    has_comma = text[comma : comma + 1] == ","
    after = comma + 1 if has_comma else last.end
    head = text[: last.end] + ("" if has_comma else ",") + text[last.end : after]
    rest = _REST_OF_LINE.match(text, after)
    if rest is None:
        return f"{head} {_member(key, value, '')}{',' if has_comma else ''}{text[after:]}"
    indent = _indent_at(text, last.key_start)
    tail = "," if has_comma else ""
    member = _member(key, value, indent)
    return f"{head}{rest.group()}\n{indent}{member}{tail}{text[rest.end() :]}"


def _insert_first(text: str, holder: Span, key: str, value: object) -> str:
    outer = _indent_at(text, holder.key_start)
    inner = outer + INDENT
    inside = text[holder.start + 1 : holder.end - 1]
    member = _member(key, value, inner)
    body = inside.rstrip()
    lead = f"{body}\n{inner}" if body else f"\n{inner}"
    return f"{text[: holder.start + 1]}{lead}{member}\n{outer}{text[holder.end - 1 :]}"


def _member(key: str, value: object, indent: str) -> str:
    return f"{_key(key)}: {_render(value, indent)}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", key) else json.dumps(key)


def _render(value: object, indent: str) -> str:
    rendered = json.dumps(value, indent=INDENT, ensure_ascii=False, allow_nan=False)
    return rendered.replace("\n", "\n" + indent)


def _indent_at(text: str, offset: int) -> str:
    """The white space that starts the line of `offset`."""
    line = text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
