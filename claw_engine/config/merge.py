"""Merging a patch into a configuration, and writing what changed into its text. Pure.

RFC 7396, and lists of objects with `id` are merged by it (gateway digest §2.1). Knows no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from claw_engine.config.edit import remove_value, set_value
from claw_engine.config.problems import KeyPath


def merged(base: object, patch: object) -> object:
    """`base` with `patch` laid over it; null takes a key out."""
    if isinstance(patch, Mapping):
        out = dict(base) if isinstance(base, Mapping) else {}
        for key, value in patch.items():
            if value is None:
                out.pop(key, None)
            else:
                out[key] = merged(out.get(key), value)
        return out
    if isinstance(patch, list) and isinstance(base, list) and has_ids(patch) and has_ids(base):
        items: dict[object, object] = {item["id"]: item for item in base}
        for item in patch:
            items[item["id"]] = merged(items.get(item["id"]), item)
        return list(items.values())
    return patch


def has_ids(items: list[object]) -> bool:
    """Whether every item is an object with an `id` that is a text."""
    return bool(items) and all(
        isinstance(item, Mapping) and isinstance(item.get("id"), str) for item in items
    )


def rewritten(text: str, old: object, new: object) -> str:
    """`text`, which says `old`, changed where `new` differs. Raises ScanError, EditError."""
    for path, value, gone in list(_changes(old, new, ())):
        text = remove_value(text, path) if gone else set_value(text, path, value)
    return text


def _changes(old: object, new: object, path: KeyPath) -> Iterator[tuple[KeyPath, object, bool]]:
    """Place, value, whether it goes."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in old:
            if key not in new:
                yield (*path, key), None, True
        for key, value in new.items():
            if key in old:
                yield from _changes(old[key], value, (*path, key))
            else:
                yield (*path, key), value, False
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, is_) in enumerate(zip(old, new, strict=True)):
            yield from _changes(was, is_, (*path, index))
    elif old != new or type(old) is not type(new):
        yield path, new, False
