"""A configuration's text as clients may see it, and back: secrets become a marker, the marker the
secret, comments and layout stay. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from claw_engine.config.parse import Document, parse
from claw_engine.config.problems import KeyPath
from claw_engine.config.redact import MARKER, MarkerError, Redactor, restore
from claw_engine.config.spans import scan

_STRING_OR_COMMENT = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(//[^\n\r]*|/\*.*?\*/)""", re.DOTALL
)


def veiled(text: str, redactor: Redactor) -> str | None:
    """The text with every secret hidden; None when it cannot be shown without changing more."""
    value = parse(Document("", text))
    shown = redactor.config(value)
    out = _put(text, _marked(shown, value, ()))
    out = _STRING_OR_COMMENT.sub(lambda found: found.group(1) or redactor.text(found.group(2)), out)
    return out if parse(Document("", out)) == shown else None


def unveiled(text: str, stored: Mapping[str, object]) -> str:
    """The text with every marker among its values replaced by what `stored` has there.

    Raises MarkerError where it has nothing, SyntaxProblem when it is no JSON5.
    """
    if MARKER not in text:
        return text
    value = parse(Document("", text))
    whole = restore(value, stored)
    out = _put(text, _marked(value, whole, ()))
    if MARKER in json.dumps(parse(Document("", out)), default=str):
        raise MarkerError("a redacted value stands inside another text or name")
    return out


def with_comments(text: str, before: str, redactor: Redactor) -> str:
    """The text with comments that `veiled` changed as they are in `before`."""
    hidden = {
        redactor.text(found): found
        for _, found in _STRING_OR_COMMENT.findall(before)
        if found and redactor.text(found) != found
    }
    if not hidden:
        return text

    def put_back(found: re.Match[str]) -> str:
        string, comment = found.groups()
        return str(string or hidden.get(comment, comment))

    return _STRING_OR_COMMENT.sub(put_back, text)


def _marked(shown: object, real: object, path: KeyPath) -> list[tuple[KeyPath, object, object]]:
    """Places where the marker stands for something, with both."""
    if shown == MARKER and real != MARKER:
        return [(path, MARKER, real)]
    if isinstance(shown, Mapping) and isinstance(real, Mapping):
        pairs = [((*path, key), shown[key], real[key]) for key in shown if key in real]
    elif isinstance(shown, list) and isinstance(real, list):
        pairs = [((*path, i), a, b) for i, (a, b) in enumerate(zip(shown, real, strict=True))]
    else:
        return []
    return [found for place, a, b in pairs for found in _marked(a, b, place)]


def _put(text: str, marks: list[tuple[KeyPath, object, object]]) -> str:
    """Write, at each place, what the text does not say there now."""
    if not marks:
        return text
    spans = scan(text)
    # From the end, so that earlier offsets stay right.
    for path, shown, real in sorted(marks, key=lambda mark: -spans.spans[mark[0]].start):
        span = spans.spans[path]
        says_marker = MARKER in text[span.start : span.end]
        new = real if says_marker else shown
        text = text[: span.start] + json.dumps(new, ensure_ascii=False) + text[span.end :]
    return text
