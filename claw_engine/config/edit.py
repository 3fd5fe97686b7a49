"""Set or take out one value in a JSON5 text and leave every other character, comments included,
alone. New keys are quoted unless the text has some that are not. Pure."""

from __future__ import annotations

import json
import re

from claw_engine.config.problems import KeyPath, format_path
from claw_engine.config.spans import Span, SpanMap, scan, skip_blank

INDENT = "  "
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n\r]*|/\*(?:(?!\*/)[^\n\r])*\*/[ \t]*)?(?=\r?\n|\Z)")


class EditError(ValueError):
    """The value cannot be put there: something on the way is no object."""


def set_value(text: str, path: KeyPath, value: object) -> str:
    """`text` with `value` at `path`; missing objects on the way are made, list items are not.

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
    if any(isinstance(step, int) for step in missing):
        raise EditError(f"{format_path(path)} is no item of a list that is there")
    for step in reversed(missing[1:]):
        value = {step: value}
    return _insert(spans, parent, str(missing[0]), value)


def remove_value(text: str, path: KeyPath) -> str:
    """`text` without the member at `path`, its comma and, if nothing else is on it, its line.

    Nothing happens when it is not there. Raises ScanError.
    """
    spans = scan(text)
    span = spans.get(path)
    if span is None or not path:
        return text
    comma = skip_blank(text, span.end)
    start, end = span.key_start, span.end
    if text[comma : comma + 1] == ",":
        end = comma + 1
    else:
        holder = spans.spans[path[:-1]]
        before = [spans.spans[(*path[:-1], step)].end for step in holder.children]
        earlier = [offset for offset in before if offset <= start]
        if earlier:  # the last one goes: so does the comma in front of it
            ahead = skip_blank(text, max(earlier))
            text = text[:ahead] + text[ahead + 1 :]
            start, end = start - 1, end - 1
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    rest = re.compile(r"[ \t]*(?:\r\n|\n|\r)").match(text, end)
    if rest is not None and not text[line:start].strip(" \t"):
        return text[:line] + text[rest.end() :]
    return text[:start] + text[end:].lstrip(" \t")


def _deepest(spans: SpanMap, path: KeyPath) -> KeyPath:
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
        return _insert_first(spans, holder, key, value)
    last = max((spans.spans[(*parent, step)] for step in holder.children), key=lambda s: s.end)
    comma = skip_blank(text, last.end)
    has_comma = text[comma : comma + 1] == ","
    after = comma + 1 if has_comma else last.end
    head = text[: last.end] + ("" if has_comma else ",") + text[last.end : after]
    rest = _REST_OF_LINE.match(text, after)
    if rest is None:
        member = _member(spans, key, value, "")
        return f"{head} {member}{',' if has_comma else ''}{text[after:]}"
    indent = _indent_at(text, last.key_start)
    tail = "," if has_comma else ""
    member = _member(spans, key, value, indent)
    return f"{head}{rest.group()}\n{indent}{member}{tail}{text[rest.end() :]}"


def _insert_first(spans: SpanMap, holder: Span, key: str, value: object) -> str:
    text = spans.text
    outer = _indent_at(text, holder.key_start)
    inner = outer + INDENT
    inside = text[holder.start + 1 : holder.end - 1]
    member = _member(spans, key, value, inner)
    body = inside.rstrip()
    lead = f"{body}\n{inner}" if body else f"\n{inner}"
    return f"{text[: holder.start + 1]}{lead}{member}\n{outer}{text[holder.end - 1 :]}"


def _member(spans: SpanMap, key: str, value: object, indent: str) -> str:
    bare = any(path and isinstance(path[-1], str) and spans.text[span.key_start] not in "\"'"
               for path, span in spans.spans.items())  # fmt: skip
    plain = bare and re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", key)
    return f"{key if plain else json.dumps(key)}: {_render(value, indent)}"


def _render(value: object, indent: str) -> str:
    rendered = json.dumps(value, indent=INDENT, ensure_ascii=False, allow_nan=False)
    return rendered.replace("\n", "\n" + indent)


def _indent_at(text: str, offset: int) -> str:
    """The white space that starts the line of `offset`."""
    line = text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
