"""`/queue`: how a person says what happens to messages that arrive during a run. Pure.

`/queue <mode> [debounce:<duration>] [cap:<n>] [drop:<policy>]`, `/queue default`, or bare.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from claw_engine.inbox.queue_modes import (
    Drop,
    QueueMode,
    QueueOverride,
    QueueRules,
    drop_of,
    mode_of,
)
from claw_engine.patterns import late

FIELDS = ("queueMode", "queueDebounceMs", "queueCap", "queueDrop")
"""Fields of the session entry, in OpenClaw's spelling."""
OPTIONS = (
    f"Modes: {', '.join(QueueMode)}. Options: debounce:<0ms...>, cap:<n>, "
    f"drop:{'|'.join(Drop)}; or default."
)
LONGEST_DEBOUNCE_MS = 3_600_000

_AT = late(r"(?:^|(?<=\s))/queue(?=$|\s|:)\s*:?", re.IGNORECASE)
_WORD = late(r"[ \t]*([^\s]+)")
_DURATION = late(r"^(\d+(?:\.\d+)?)(ms|s|m|h)?$", re.IGNORECASE)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


class Directive(Struct, frozen=True):
    """What a `/queue` said. `reset` clears the session's own settings; `bad` names what was not
    understood; `rest` is the message without the directive."""

    override: QueueOverride
    rest: str
    reset: bool = False
    bad: tuple[str, ...] = ()

    @property
    def bare(self) -> bool:
        return self.override.empty and not self.reset and not self.bad


def find(text: str) -> Directive | None:
    """The first `/queue` of a message, or None. Options end at the first word that is none."""
    start = _AT.search(text)
    if start is None:
        return None
    given: dict[str, object] = {}
    bad: list[str] = []
    reset, end = False, start.end()
    while (word := _WORD.match(text, end)) is not None:
        read = _option(word[1])
        first = not (given or reset or bad)
        if read is None and first and _stands_alone(text, start, word):
            bad.append(word[1])
        elif read is None:
            break
        elif read == "reset":
            reset = True
        elif isinstance(read, tuple):
            name, value = read
            if value is None:
                bad.append(word[1])
            else:
                given[name] = value
        end = word.end()
    before, after = text[: start.start()].rstrip(), text[end:].strip()
    rest = f"{before} {after}".strip() if "\n" not in after else f"{before}\n{after}".strip()
    return Directive(override_of(given), rest, reset, tuple(bad))


def _stands_alone(text: str, start: re.Match[str], word: re.Match[str]) -> bool:
    """`/queue blue` and nothing else: a wrong word, not a message."""
    return not text[: start.start()].strip() and not text[word.end() :].strip()


def _option(word: str) -> tuple[str, object] | str | None:
    """A known option as (field, value), value None if it is wrong; "reset"; None if it is none."""
    if word.lower() in ("default", "reset", "clear"):
        return "reset"
    if (mode := mode_of(word)) is not None:
        return "mode", mode
    name, sign, value = word.replace("=", ":", 1).partition(":")
    if not sign:
        return None
    match name.lower():
        case "debounce":
            return "debounce_ms", duration_ms(value)
        case "cap":
            return "cap", int(value) if value.isdecimal() and 0 < int(value) <= 10_000 else None
        case "drop":
            return "drop", drop_of(value)
        case _:
            return None


def duration_ms(text: str) -> int | None:
    """`500ms`, `2s`, `1.5s`, `250` (ms) as ms; None for anything else or more than an hour."""
    found = _DURATION.match(text.strip())
    if found is None:
        return None
    value = round(float(found[1]) * _UNITS[(found[2] or "ms").lower()])
    return value if value <= LONGEST_DEBOUNCE_MS else None


def override_of(given: Mapping[str, object]) -> QueueOverride:
    """An override from loose values; wrong types count as not given."""
    mode, drop = given.get("mode"), given.get("drop")
    debounce, cap = given.get("debounce_ms"), given.get("cap")
    return QueueOverride(
        mode_of(mode) if isinstance(mode, str) else None,
        debounce if isinstance(debounce, int) and debounce >= 0 else None,
        cap if isinstance(cap, int) and cap > 0 else None,
        drop_of(drop) if isinstance(drop, str) else None,
    )


def override_of_entry(raw: Mapping[str, object]) -> QueueOverride:
    """A session entry's own settings."""
    names = ("mode", "debounce_ms", "cap", "drop")
    return override_of({name: raw.get(key) for name, key in zip(names, FIELDS, strict=True)})


def entry_fields(directive: Directive) -> dict[str, object]:
    """What a standalone directive writes into the session entry; None removes a field."""
    fields: dict[str, object] = dict.fromkeys(FIELDS) if directive.reset else {}
    given = directive.override
    values = (given.mode, given.debounce_ms, given.cap, given.drop)
    for key, value in zip(FIELDS, values, strict=True):
        if value is not None:
            fields[key] = value.value if isinstance(value, QueueMode | Drop) else value
    return fields


def acknowledgement(directive: Directive, now: QueueRules) -> str:
    """The answer to a standalone directive, one line per option."""
    if directive.bad:
        return f"Unrecognized queue option {', '.join(directive.bad)!r}. {OPTIONS}"
    if directive.bare:
        return f"{describe(now)}\n{OPTIONS}"
    lines = ["Queue settings of this session cleared."] if directive.reset else []
    given = directive.override
    if given.mode is not None:
        lines.append(f"Queue mode set to {given.mode.value}.")
    if given.debounce_ms is not None:
        lines.append(f"Queue debounce set to {given.debounce_ms} ms.")
    if given.cap is not None:
        lines.append(f"Queue cap set to {given.cap}.")
    if given.drop is not None:
        lines.append(f"Queue drop policy set to {given.drop.value}.")
    return "\n".join(lines)


def describe(rules: QueueRules) -> str:
    """The settings in force, in one line."""
    return (
        f"Queue: {rules.mode.value}, debounce {rules.debounce_ms} ms, cap {rules.cap}, "
        f"drop {rules.drop.value}."
    )
