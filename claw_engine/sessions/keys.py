"""Session keys: one canonical lower-case spelling for every conversation. Pure.

Grammar: OpenClaw 2026.2.26 (gateway digest §3.1). `agent:<agentId>:<rest>` is canonical, `main`
and any other bare key mean the default agent's, `global` and `unknown` stay bare.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from claw_engine.patterns import late
from claw_engine.sessions.errors import InvalidSessionKey

MAIN = "main"
DEFAULT_ACCOUNT = "default"
BARE = frozenset({"global", "unknown"})
MAX_KEY = 512
"""Longest key without its agent, in characters; ours, so that no peer id can bloat the index."""

_CANONICAL = late(r"agent:[a-z0-9][a-z0-9_-]{0,63}:[a-z0-9@+_.-][a-z0-9@+_.:-]{0,510}", re.ASCII)
_FORBIDDEN = frozenset({"__proto__", "prototype", "constructor"})
_AGENT_ID = late(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_SESSION_ID = late(r"[a-z0-9][a-z0-9._-]{0,127}", re.ASCII | re.IGNORECASE)
_NOT_AGENT_ID = late(r"[^a-z0-9_-]+", re.ASCII)
_CONTROL = late(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class SessionKey(Struct, frozen=True):
    """A canonical key: the agent it belongs to, the rest, and its text (also `str(key)`)."""

    agent_id: str
    rest: str
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_main(self) -> bool:
        return self.rest == MAIN

    @property
    def is_cron_run(self) -> bool:
        """A single run of a cron job: hidden in lists."""
        return self.rest.startswith("cron:") and ":run:" in self.rest

    @property
    def subagent_depth(self) -> int:
        """0 for a conversation, 1 for a sub-agent's, 2 for its sub-agent's …"""
        return f":{self.rest}".count(":subagent:")


def normalise_agent_id(raw: str) -> str:
    """A valid agent id for any text; empty becomes `main`."""
    text = raw.strip().lower()
    if _AGENT_ID.fullmatch(text):
        return text
    return _NOT_AGENT_ID.sub("-", text).strip("-")[:64].strip("-_") or MAIN


def is_canonical(key: str) -> bool:
    """Whether a key is plainly canonical already; false means: ask `canonical`."""
    return _CANONICAL.fullmatch(key) is not None


def normalise_account_id(raw: str) -> str:
    """A valid account id for any text, in the form of agent ids; empty becomes `default`."""
    text = raw.strip().lower()
    if text in _FORBIDDEN or not _NOT_AGENT_ID.sub("", text).strip("-_"):
        return DEFAULT_ACCOUNT
    made = normalise_agent_id(text)
    return DEFAULT_ACCOUNT if made in _FORBIDDEN else made


def canonical(key: str | SessionKey, default_agent: str = MAIN) -> SessionKey:
    """The one spelling of a key; idempotent.

    Raises InvalidSessionKey for an empty key, for `agent:` with less than an agent and a rest,
    for control characters and for a rest of more than 512 characters.
    """
    return key if isinstance(key, SessionKey) else _canonical(key, default_agent)


@lru_cache(maxsize=4096)
def _canonical(key: str, default_agent: str) -> SessionKey:
    text = key.strip().lower().strip()
    if not text:
        raise InvalidSessionKey("The session key is empty.")
    if _CONTROL.search(text):
        raise InvalidSessionKey("The session key holds control characters.")
    agent = normalise_agent_id(default_agent)
    if text in BARE:
        return SessionKey(agent, text, text)
    if text.startswith("agent:"):
        _, _, tail = text.partition(":")
        agent, _, rest = tail.partition(":")
        if not agent.strip() or not rest.strip(": "):
            raise InvalidSessionKey(
                f"Malformed session key {text!r}: expected agent:<agentId>:<rest>.",
                hint="Use `main`, a plain name, or the full form.",
            )
        agent = normalise_agent_id(agent)
    else:
        rest = text
        if not rest.strip(": "):
            raise InvalidSessionKey(f"The session key {text!r} has no name in it.")
    if len(rest) > MAX_KEY:
        raise InvalidSessionKey(f"The session key is longer than {MAX_KEY} characters.")
    return SessionKey(agent, rest, f"agent:{agent}:{rest}")


def valid_session_id(value: object) -> bool:
    """Whether a value can name a transcript file (gateway digest §3.8)."""
    return isinstance(value, str) and _SESSION_ID.fullmatch(value) is not None


def chat_type(key: SessionKey) -> str:
    """direct, group, channel or unknown, read from the key's tokens."""
    tokens = key.rest.split(":")
    if "group" in tokens:
        return "group"
    if "channel" in tokens:
        return "channel"
    if any(a.startswith("guild-") and b.startswith("channel-") for a, b in pairwise(tokens)):
        return "channel"  # an older spelling of Discord rooms
    return "direct" if "direct" in tokens or "dm" in tokens or key.is_main else "unknown"


def thread_parent(key: SessionKey) -> SessionKey | None:
    """The conversation a thread or topic hangs on; None when the key names no thread."""
    cut = max(key.text.rfind(":thread:"), key.text.rfind(":topic:"))
    return canonical(key.text[:cut], key.agent_id) if cut > 0 else None
