"""The head of a SKILL.md, read leniently where people err and never trusted. Pure.

YAML is read with the loader that knows nothing but text, lists and maps: no tag makes an object,
no merge grows (case SK-01). Knows no file.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping

from claw_engine.patterns import late
from claw_engine.skills.model import (
    MAX_DESCRIPTION,
    MAX_NAME,
    BadSkill,
    Front,
    Install,
    Requires,
)

MAX_FRONT = 32_768
"""Characters of a head."""
_MAX_LIST = 64
"""Names in one list of requirements."""

_METADATA_KEYS = ("openclaw", "clawdbot", "clawdis")
_FALSE = frozenset({"false", "no", "off", "0", ""})
_KEY_LINE = late(r"([A-Za-z][\w-]*):[ \t]+(\S.*)")
_PAIR = late(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_BINARY = late(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def read_front(text: str, folder: str) -> Front:
    """The head of a file in a directory named `folder`. Raises BadSkill."""
    raw, warnings = _parsed(_head(text))
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        if "name" in raw and not isinstance(name, str):
            raise BadSkill("its name is not a text")
        name = folder
        warnings.append("it has no name: its folder's is used")
    name = name.strip()
    if any(unicodedata.category(c) in _HIDDEN for c in name) or "/" in name or "\\" in name:
        raise BadSkill("its name holds characters that no name has")
    if len(name) > MAX_NAME:
        raise BadSkill(f"its name is longer than {MAX_NAME} characters")
    if name != folder:
        warnings.append(f"its folder has another name: {_plain(folder)}")
    description = raw.get("description")
    if description is not None and not isinstance(description, str):
        raise BadSkill("its description is not a text")
    told = _plain(description or "")
    if not told:
        raise BadSkill("it has no description: nobody could tell when it fits")
    if len(told) > MAX_DESCRIPTION:
        told = told[: MAX_DESCRIPTION - 1] + "…"
        warnings.append(f"its description is cut at {MAX_DESCRIPTION} characters")
    meta = _metadata(raw.get("metadata"), warnings)
    needs = _map(meta.get("requires"))
    return Front(
        name,
        told,
        _word(meta.get("skillKey")) or name,
        homepage=_word(raw.get("homepage")) or _word(meta.get("homepage")),
        emoji=_word(meta.get("emoji")),
        primary_env=_word(meta.get("primaryEnv")),
        always=_flag(meta.get("always"), False),
        for_model=not _flag(raw.get("disable-model-invocation"), False),
        for_user=_flag(raw.get("user-invocable"), True),
        requires=Requires(
            _words(needs.get("bins")), _words(needs.get("anyBins")), _words(needs.get("env")),
            _words(needs.get("config")), _words(meta.get("os")),
        ),
        install=_installs(meta.get("install")),
        warnings=tuple(warnings),
    )  # fmt: skip


def _head(text: str) -> str:
    """What stands between the two `---`. Raises BadSkill."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not re.match(r"---[ \t]*\n", lines):
        raise BadSkill("it does not begin with a head: a line of ---")
    start = lines.index("\n") + 1
    end = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.M).search(lines, start)
    if end is None:
        raise BadSkill("its head has no end: a second line of ---")
    head = lines[start : end.start()]
    if len(head) > MAX_FRONT:
        raise BadSkill(f"its head is longer than {MAX_FRONT} characters")
    if _BINARY.search(head):
        raise BadSkill("its head is not text")
    return head


def _parsed(head: str) -> tuple[Mapping[str, object], list[str]]:
    """The head as a map of texts, lists and maps. Raises BadSkill."""
    from yaml import YAMLError  # only when a skill is read: it costs a start 15 ms

    try:
        return _loaded(head), []
    except (YAMLError, RecursionError, ValueError) as error:
        first = error
    try:
        found = _loaded(_mended(head))
    except (YAMLError, RecursionError, ValueError):
        raise BadSkill(f"its head is not YAML{_place(first)}") from first
    why = f"its head is not YAML{_place(first)} and was read leniently: put such texts in quotes"
    return found, [why]


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 2})" if mark is not None else ""


def _loaded(head: str) -> Mapping[str, object]:
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    found = yaml.load(head, loader)
    if found is None or found == "":
        return {}
    if not isinstance(found, dict):
        raise ValueError("no map")
    return found


def _mended(head: str) -> str:
    """The head with every plain text behind a top-level key in quotes, no tabs before text, and
    characters that JSON writes as two escapes as themselves."""
    out: list[str] = []
    head = _PAIR.sub(_joined, head)
    lines = [re.sub(r"^[ \t]+", lambda m: m[0].replace("\t", "  "), s) for s in head.split("\n")]
    while lines:
        line = lines.pop(0)
        found = _KEY_LINE.fullmatch(line)
        if found is None or _is_marked(found[2].rstrip()):
            out.append(line)
            continue
        value = found[2].strip()
        while lines and lines[0].startswith(" ") and lines[0].strip():
            value += " " + lines.pop(0).strip()
        out.append(f"{found[1]}: {json.dumps(value)}")
    return "\n".join(out)


def _joined(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16), int(pair[2], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _is_marked(value: str) -> bool:
    """Whether a value says of itself what it is: quoted, a list, a map, a block, a tag."""
    first = value[0]
    if first in "\"'":
        return len(value) > 1 and value[-1] == first
    return first in "[{|>!"


def _metadata(value: object, warnings: list[str]) -> Mapping[str, object]:
    """OpenClaw's part of `metadata`; it may be a text that holds JSON."""
    if isinstance(value, str) and value.strip():
        value = _json5(value)
        if value is None:
            warnings.append("its metadata is neither JSON nor YAML and was not read")
    known = _map(value)
    return next((_map(known[key]) for key in _METADATA_KEYS if key in known), {})


def _json5(text: str) -> object:
    import pyjson5  # only for metadata that is written as a text

    try:
        return pyjson5.decode(text, 16)
    except (pyjson5.Json5Exception, ValueError):
        return None


def _installs(value: object) -> tuple[Install, ...]:
    out = []
    for number, item in enumerate(value if isinstance(value, list) else ()):
        told = _map(item)
        kind = _word(told.get("kind"))
        if kind and number < _MAX_LIST:
            name = _word(told.get("id")) or f"{kind}-{number}"
            out.append(Install(name, kind, _word(told.get("label")), _words(told.get("bins"))))
    return tuple(out)


def _plain(text: str) -> str:
    """One line without characters that a reader does not see."""
    seen = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in text)
    return " ".join(seen.split())


def _word(value: object) -> str:
    return _plain(value)[:256] if isinstance(value, str) else ""


def _words(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else ()
    return tuple(word for item in items[:_MAX_LIST] if (word := _word(item)))


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _flag(value: object, default: bool) -> bool:
    """Truth as text: the loader knows no truth values, a JSON text does."""
    if value is None:
        return default
    return value if isinstance(value, bool) else str(value).strip().lower() not in _FALSE
