"""Changes of a session entry by name: what a reset keeps, what `sessions.patch` may set. Pure.

Field names and rules: OpenClaw 2026.2.26 (gateway digest §1.11 sessions.reset, sessions.patch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from claw_engine.errors import InvalidRequest
from claw_engine.sessions.entry import SessionEntry
from claw_engine.sessions.keys import SessionKey

KEPT_BY_RESET = (
    "thinkingLevel", "verboseLevel", "reasoningLevel", "responseUsage", "ttsAuto",
    "model", "modelProvider", "providerOverride", "modelOverride", "contextTokens",
    "sendPolicy", "label", "displayName", "origin", "lastChannel", "lastTo", "skillsSnapshot",
    "chatType", "channel", "groupId", "groupChannel", "subject", "space",
    "permissionMode", "pinned", "icon", "color", "category",
    "deliveryContext", "lastAccountId", "lastThreadId", "spawnedBy", "spawnDepth",
)  # fmt: skip
"""The digest's list, and what says which conversation this is (a reset does not change that)."""

COUNTERS = ("inputTokens", "outputTokens", "totalTokens")

LABEL_MAX = 64
"""Characters of a label (gateway digest §3.5)."""

_LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "thinkingLevel": _LEVELS,
    "verboseLevel": ("off", "on", "full"),
    "reasoningLevel": ("off", "on", "stream"),
    "responseUsage": ("off", "tokens", "full", "on"),
    "elevatedLevel": ("off", "on", "ask", "full"),
    "execHost": ("sandbox", "gateway", "node"),
    "execSecurity": ("deny", "allowlist", "full"),
    "execAsk": ("off", "on-miss", "always"),
    "sendPolicy": ("allow", "deny"),
    "groupActivation": ("mention", "always"),
    "queueMode": ("collect", "followup", "steer", "steer-backlog", "interrupt"),
    "queueDrop": ("old", "new", "summarize"),
    "permissionMode": ("read-only", "guarded", "workspace", "full"),
}
_FLAGS = ("archived", "pinned")
_WORDS = {"icon": 64, "color": 32, "category": 64}
"""What protocol 4 lets an operator mark a session with, and the most characters of it."""
_NUMBERS = {"queueDebounceMs": 0, "queueCap": 1}
_ONCE = ("spawnedBy", "spawnDepth")

ResolveModel = Callable[[str], tuple[str, str]]
"""Turns a model's name or alias into (provider, model); raises a ClawError if it is not allowed."""


def reset_entry(entry: SessionEntry, session_id: str, now_ms: int) -> SessionEntry:
    """The entry of the talk that begins now."""
    kept = {name: entry.raw[name] for name in KEPT_BY_RESET if name in entry.raw}
    return SessionEntry(
        entry.key,
        {
            "sessionId": session_id,
            "updatedAt": now_ms,
            "systemSent": False,
            "abortedLastRun": False,
            **kept,
            **dict.fromkeys(COUNTERS, 0),
            "totalTokensFresh": True,
            "sessionFile": f"{session_id}.jsonl",
        },
    )


def patched(
    entry: SessionEntry,
    key: SessionKey,
    fields: Mapping[str, object],
    others: Iterable[SessionEntry],
    resolve_model: ResolveModel | None = None,
) -> SessionEntry:
    """The entry with these fields set; None clears one. Raises InvalidRequest."""
    changes: dict[str, object] = {}
    for name, value in fields.items():
        if name == "model":
            changes |= _model(value, resolve_model)
        elif name in _ONCE:
            changes |= _spawn(entry, key, name, value)
        elif value is None and (name in _CHOICES or name in _NUMBERS or name in _TEXTS):
            changes[name] = None
        elif name == "label":
            changes[name] = _label(entry, value, others)
        elif name in _CHOICES:
            changes[name] = _choice(name, value)
        elif name in _NUMBERS:
            changes[name] = _number(name, value)
        elif name in _FLAGS:
            changes[name] = _flag(name, value)
        elif name in _WORDS:
            changes[name] = _text(name, value)[: _WORDS[name]]
        elif name == "execNode":
            changes[name] = _text(name, value)
        else:
            raise InvalidRequest(f"A session has no setting {name!r}.")
    return entry.replace(**changes)


_TEXTS = ("label", "execNode", *_FLAGS, *_WORDS)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{name} must be true or false.")
    return value


def _choice(name: str, value: object) -> str:
    allowed = _CHOICES[name]
    text = value.strip().lower() if isinstance(value, str) else ""
    if text not in allowed:
        raise InvalidRequest(_sentence(name, allowed))
    return "tokens" if name == "responseUsage" and text == "on" else text


def _sentence(name: str, allowed: tuple[str, ...]) -> str:
    """In OpenClaw's words; of levels it names those that every model has."""
    if name == "thinkingLevel":
        return f"invalid {name} (use {'|'.join(allowed[:-1])})"
    quoted = "|".join(f'"{one}"' for one in allowed)
    return f"invalid {name} (use {quoted})"


def _number(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < _NUMBERS[name]:
        raise InvalidRequest(f"{name} must be a whole number of at least {_NUMBERS[name]}.")
    return value


def _text(name: str, value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise InvalidRequest(f"{name} must be text that is not empty.")
    return text


def _label(entry: SessionEntry, value: object, others: Iterable[SessionEntry]) -> str:
    label = _text("label", value)
    if len(label) > LABEL_MAX:
        raise InvalidRequest(f"A label has at most {LABEL_MAX} characters.")
    taken = next((o for o in others if o.key != entry.key and o.text("label") == label), None)
    if taken is not None:
        raise InvalidRequest(f"The label {label!r} belongs to {taken.key} already.")
    return label


def _model(value: object, resolve: ResolveModel | None) -> Mapping[str, object]:
    if value is None:
        return {"providerOverride": None, "modelOverride": None}
    name = _text("model", value)
    if resolve is not None:
        provider, model = resolve(name)
    else:
        provider, slash, model = name.partition("/")
        if not slash or not provider or not model:
            raise InvalidRequest("model must be provider/model.")
    # Who changes the model by hand also gives up a key that was chosen for the old one.
    return {
        "providerOverride": provider,
        "modelOverride": model,
        "authProfileOverride": None,
        "authProfileOverrideSource": None,
        "authProfileOverrideCompactionCount": None,
    }


def _spawn(entry: SessionEntry, key: SessionKey, name: str, value: object) -> Mapping[str, object]:
    if not key.subagent_depth:
        raise InvalidRequest(f"{name} belongs to the sessions of sub-agents only.")
    if name == "spawnDepth":
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InvalidRequest("spawnDepth must be a whole number of at least 0.")
    else:
        value = _text(name, value)
    old = entry.raw.get(name)
    if old is not None and old != value:
        raise InvalidRequest(f"{name} cannot be changed once it is set.")
    return {name: value}
