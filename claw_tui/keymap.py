"""What is made of the table of keys: bindings, the hint line, the names of the views."""

from __future__ import annotations

from msgspec import Struct, field
from textual.binding import Binding, BindingType

from claw_tui.keytable import KEYS

VIEWS = (
    ("1", "Console", ""),
    ("2", "Prompt", ""),
    ("3", "Context", "pruning and compaction; this engine does not compact yet"),
    ("4", "Memory", "files and search; this engine keeps no memory index yet"),
    ("5", "Schedule", "cron jobs and heartbeat; this engine has no scheduler yet"),
    ("6", "Lanes", ""),
    ("7", "Channels", "accounts and pairing; this engine has no channels yet"),
    ("8", "Approvals", ""),
    ("9", "Logs", ""),
)

GREY = {
    "2": ("Prompt", "what was sent to the model, part by part; this gateway does not tell it"),
    "6": ("Lanes", "what runs and what waits, and its order; this gateway does not tell it"),
    "9": ("Logs", "the log of the engine, followed and filtered; this gateway does not tell it"),
    "runs": ("Past runs", "what a run did, step by step; this gateway keeps no record of it"),
}
"""What a page is called, and says of a gateway that cannot serve it, where ours can."""


def bindings(*wheres: str) -> list[BindingType]:
    """Textual bindings of the given places, with their stable ids."""
    return [
        Binding(k.keys, k.action, k.label, id=k.id, show=False, priority=k.priority)
        for k in KEYS
        if k.where in wheres and k.action
    ]


def view_bindings() -> list[BindingType]:
    return [
        Binding(number, f"view({number})", name, id=f"view.{name.lower()}", show=False)
        for number, name, _ in VIEWS
    ]


class Facts(Struct, frozen=True):
    """What decides which keys are worth showing now."""

    mode: str
    """TYPE, NAV, CARD, ASK or TEXT (a one-line prompt)."""
    running: bool = False
    waiting: int = 0
    paused: bool = False
    pane: str = "conversation"
    draft: bool = False
    recorded: bool = False
    """A file is shown: nothing can be written to it."""
    extra: tuple[tuple[str, str], ...] = field(default=())


LISTS = {
    "runs": ("rows.down", "rows.up", "runs.resume", "runs.discard", "rows.open", "rows.back"),
    "notices": ("rows.down", "rows.up", "rows.more", "rows.open", "rows.back"),
    "prompt": (
        "rows.open",
        "prompt.edit",
        "prompt.compare",
        "prompt.search",
        "prompt.older",
        "prompt.calls",
        "rows.back",
    ),
    "prompt text": (
        "rows.down",
        "rows.more",
        "prompt.left",
        "prompt.right",
        "prompt.edit",
        "prompt.copy",
        "past.close",
    ),
    "prompt calls": (
        "rows.down",
        "rows.up",
        "rows.open",
        "prompt.compare",
        "prompt.calls",
        "past.close",
    ),
    "prompt pick": ("rows.down", "rows.up", "rows.open", "past.close"),
    "prompt matches": ("rows.down", "rows.up", "rows.open", "prompt.search", "past.close"),
    "prompt compare": ("rows.down", "rows.more", "rows.open", "prompt.compare", "past.close"),
    "lanes": (
        "rows.down",
        "lanes.wider",
        "lanes.narrower",
        "lanes.reset",
        "nav.pause",
        "rows.back",
    ),
    "lanes queued": (
        "rows.down",
        "lanes.earlier",
        "lanes.later",
        "lanes.drop",
        "rows.open",
        "rows.back",
    ),
    "lanes run": ("rows.down", "rows.up", "rows.open", "nav.pause", "rows.back"),
    "logs": ("rows.up", "logs.follow", "logs.filter", "logs.level", "rows.open", "rows.back"),
    "log record": ("rows.down", "rows.up", "rows.more", "logs.copy", "past.close"),
    "prompt off": ("nav.type", "rows.back"),
    "past": ("rows.down", "rows.up", "rows.more", "rows.open", "rows.back"),
    "replay": (
        "past.play",
        "past.back",
        "past.on",
        "past.faster",
        "past.prompt",
        "past.close",
    ),
}
"""Keys of the pages with a list, by page."""

_BY_ID = {key.id: key for key in KEYS}


def hints(facts: Facts) -> tuple[list[tuple[str, str]], tuple[str, str] | None]:
    """The five or six keys that make sense now, and the one at the right edge."""

    def pick(*ids: str) -> list[tuple[str, str]]:
        return [(_BY_ID[i].shown, _BY_ID[i].label) for i in ids]

    wait = ["app.approvals"] if facts.waiting else []
    match facts.mode:
        case "TYPE":
            ids = ["type.send", "type.newline"] if facts.draft else ["type.nav", "app.palette"]
            ids += wait or ([] if facts.draft else ["app.approvals"])
            ids += ["app.stop"] if facts.running else ([] if facts.draft else ["type.newline"])
            return pick(*ids), ("esc ?", "all keys")
        case "CARD" if facts.pane == "rules":
            keys = pick("card.down", "card.up", "rules.undo")
            return [*keys, ("tab", "history"), ("esc", "console")], ("?", "all keys")
        case "CARD" if facts.pane == "history":
            keys = pick("card.down", "card.up")
            return [*keys, ("tab", "queue"), ("esc", "console")], ("?", "all keys")
        case "CARD":
            if not facts.waiting:
                return [("tab", "rules"), ("esc", "console")], ("?", "all keys")
            ids = ["card.down", "card.scroll_down", "queue.filter", "queue.section", "card.later"]
            return pick(*ids), ("?", "all keys")
        case "ASK":
            return pick("ask.yes", "ask.no"), None
        case "TEXT":
            return list(facts.extra), None
        case _:
            if facts.pane in LISTS:
                ids = [i for i in LISTS[facts.pane] if i != "nav.type" or not facts.recorded]
                return pick(*ids), ("?", "all keys")
            ids = [] if facts.recorded else ["nav.type"]
            ids += ["nav.approvals"] if facts.waiting else []
            ids += ["nav.stop"] if facts.running else []
            if not facts.pane:  # a view without panes of its own
                return [*pick(*ids), ("1", "console")], ("?", "all keys")
            ids += ["list.down", "list.open", "nav.next"]
            ids += ["list.filter"] if facts.pane == "sessions" else ["nav.copy"]
            keys = pick(*ids)
            if facts.paused:
                keys.insert(1, ("P", "resume"))
            return keys[:7], ("?", "all keys")
