"""Tool names as lists write them: aliases, groups, profiles, and the catalogue behind them. Pure.

Facts of OpenClaw 2026.2.26 (gateway digest §6.1). The catalogue also names tools that this engine
does not have (yet): a list that speaks of them is no mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

ALIASES: Mapping[str, str] = {"bash": "exec", "shell": "exec", "apply-patch": "apply_patch"}
"""Other names a tool answers to, in lists and in calls."""

PROFILES = ("minimal", "coding", "messaging", "full")


class Known(Struct, frozen=True):
    """A tool of the catalogue: its group, the profiles that hold it, one line about it."""

    id: str
    group: str
    profiles: tuple[str, ...]
    about: str


_CODE, _TALK = ("coding",), ("coding", "messaging")
CATALOG: tuple[Known, ...] = (
    Known("read", "fs", _CODE, "Read a text file"),
    Known("write", "fs", _CODE, "Create or overwrite a file"),
    Known("edit", "fs", _CODE, "Replace an exact piece of a file"),
    Known("apply_patch", "fs", _CODE, "Change several files with one patch"),
    Known("exec", "runtime", _CODE, "Run a shell command"),
    Known("process", "runtime", _CODE, "Look after commands in the background"),
    Known("web_search", "web", (), "Search the web"),
    Known("web_fetch", "web", (), "Fetch a page as text"),
    Known("memory_search", "memory", _CODE, "Search the memory"),
    Known("memory_get", "memory", _CODE, "Read from the memory"),
    Known("sessions_list", "sessions", _TALK, "List conversations"),
    Known("sessions_history", "sessions", _TALK, "Read another conversation"),
    Known("sessions_send", "sessions", _TALK, "Write into another conversation"),
    Known("sessions_spawn", "sessions", _CODE, "Start a sub-agent"),
    Known("subagents", "sessions", _CODE, "Look after sub-agents"),
    Known("session_status", "sessions", ("minimal", *_TALK), "State of the conversation"),
    Known("browser", "ui", (), "Drive a browser"),
    Known("canvas", "ui", (), "Draw on a canvas"),
    Known("message", "messaging", ("messaging",), "Send messages through channels"),
    Known("cron", "automation", _CODE, "Plan jobs"),
    Known("gateway", "automation", (), "Configure and restart the engine"),
    Known("nodes", "nodes", (), "Use remote hosts"),
    Known("agents_list", "agents", (), "List agents"),
    Known("image", "media", _CODE, "Look at an image"),
    Known("tts", "media", (), "Speak a text"),
)

GROUP_LABELS: Mapping[str, str] = {
    "fs": "Files",
    "runtime": "Commands",
    "web": "Web",
    "memory": "Memory",
    "sessions": "Sessions",
    "ui": "Browser and canvas",
    "messaging": "Messaging",
    "automation": "Automation",
    "nodes": "Nodes",
    "agents": "Agents",
    "media": "Media",
}

OWNER_ONLY = frozenset({"cron", "gateway", "whatsapp_login"})
"""Removed for senders who are not the owner, whatever the lists say."""

PLUGINS = "group:plugins"
_CORE = frozenset(known.id for known in CATALOG)


def _groups() -> dict[str, tuple[str, ...]]:
    found = {
        f"group:{group}": tuple(k.id for k in CATALOG if k.group == group) for group in GROUP_LABELS
    }
    found["group:openclaw"] = tuple(k.id for k in CATALOG if k.group not in ("fs", "runtime"))
    return found


GROUPS: Mapping[str, tuple[str, ...]] = _groups()


class Present(Struct, frozen=True):
    """A tool that exists here: `plugin` is the id of what brought it, "" for our own."""

    name: str
    plugin: str = ""
    owner_only: bool = False


class Vocabulary(Struct, frozen=True):
    """What an entry of a list can mean, given the tools that exist."""

    present: tuple[Present, ...] = ()

    def expand(self, entry: str) -> tuple[str, ...]:
        """The names or patterns an entry stands for; itself when it is no group and no plugin."""
        name = normal(entry)
        if name in GROUPS:
            return GROUPS[name]
        if name == PLUGINS:
            return tuple(tool.name for tool in self.present if tool.plugin)
        brought = tuple(tool.name for tool in self.present if tool.plugin.lower() == name)
        return brought if brought and name not in self.core() else (name,)

    def core(self) -> frozenset[str]:
        """Names of tools that no plugin brought, the catalogue's included."""
        return _CORE | {tool.name for tool in self.present if not tool.plugin}

    def known(self, entry: str) -> bool:
        """Whether an entry can mean anything here."""
        return normal(entry) == PLUGINS or self._meets(entry, self._names())

    def means_core(self, entry: str) -> bool:
        """Whether an entry means at least one tool that no plugin brought."""
        return self._meets(entry, self.core())

    def _meets(self, entry: str, names: frozenset[str]) -> bool:
        return any(
            matches(pattern, name) if "*" in pattern else pattern in names
            for pattern in self.expand(entry)
            for name in (names if "*" in pattern else ("",))
        )

    def _names(self) -> frozenset[str]:
        return self.core() | OWNER_ONLY | {tool.name for tool in self.present}


def normal(name: str) -> str:
    """A name or entry as it is compared: trimmed, lower case, aliases resolved."""
    plain = name.strip().lower()
    return ALIASES.get(plain, plain)


def matches(pattern: str, name: str) -> bool:
    """Whether a normal name meets a normal pattern; only `*` is special."""
    return pattern == name or ("*" in pattern and _compiled(pattern).match(name) is not None)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))) + r"\Z", re.S)


def profile_tools(profile: str) -> tuple[str, ...]:
    """What a profile allows; empty = no restriction."""
    if profile == "full":
        return ()
    return tuple(known.id for known in CATALOG if profile in known.profiles)


def catalog_order(names: Iterable[str]) -> list[str]:
    """Names in the catalogue's order, others after them."""
    rank = {known.id: i for i, known in enumerate(CATALOG)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))
