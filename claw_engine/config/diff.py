"""What differs between two configurations: leaf paths, and the text for the operator. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from claw_engine.config.problems import KeyPath
from claw_engine.config.redact import Redactor


def changed_paths(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[KeyPath, ...]:
    """Paths of the leaves that differ; a list is compared as a whole."""
    return tuple(_walk(old, new, ()))


def _walk(old: object, new: object, path: KeyPath) -> Iterator[KeyPath]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _walk(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, Mapping) and old and new is None:
        yield from _walk(old, {}, path)
    elif isinstance(new, Mapping) and new and old is None:
        yield from _walk({}, new, path)
    elif old != new or type(old) is not type(new):
        yield path


def text_diff(good: str, current: str, redactor: Redactor, *, max_lines: int = 200) -> str:
    """A unified diff of two config texts with secrets hidden on both sides."""
    lines = difflib.unified_diff(
        redactor.text(good).splitlines(),
        redactor.text(current).splitlines(),
        "in force",
        "in the file",
        lineterm="",
    )
    return "\n".join(line for line, _ in zip(lines, range(max_lines), strict=False))
