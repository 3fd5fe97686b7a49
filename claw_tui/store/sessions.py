"""The session list: rows from the engine, with a state that follows live events at once."""

from __future__ import annotations

from msgspec import Struct, field

from claw_tui.store.wire import Json, flag, num, obj, objs, text


class SessionRow(Struct):
    key: str
    session_id: str = ""
    updated_ms: int = 0
    name: str = ""
    state: str = "idle"
    active_run: str = ""
    preview: str = ""
    aborted: bool = False
    model: str = ""
    tokens: int = 0
    context: int = 0


RUN_TO_SESSION = {
    "queued": "queued",
    "parked": "waiting",
    "done": "idle",
    "failed": "idle",
    "aborted": "idle",
    "interrupted": "idle",
}


class Sessions(Struct):
    rows: dict[str, SessionRow] = field(default_factory=dict)

    def replace(self, payload: Json) -> None:
        """Take a sessions.list payload."""
        rows = {}
        for raw in objs(payload.get("sessions")):
            row = row_from(raw)
            if row.key:
                rows[row.key] = row
        for key, row in self.rows.items():
            if key not in rows and not row.session_id:
                rows[key] = row
        self.rows = rows

    def ensure(self, key: str) -> SessionRow:
        return self.rows.setdefault(key, SessionRow(key))

    def run_state(self, key: str, run_id: str, state: str, ts: int) -> None:
        """A run of this session moved to `state` (a name of runs.RunState)."""
        row = self.ensure(key)
        row.state = RUN_TO_SESSION.get(state, "running")
        row.active_run = "" if row.state == "idle" else run_id
        row.updated_ms = max(row.updated_ms, ts)

    def ordered(self, needle: str = "") -> list[SessionRow]:
        """Newest first; `!word` keeps the rows that do not have the word."""
        rows = sorted(self.rows.values(), key=lambda row: (-row.updated_ms, row.key))
        inverse = needle.startswith("!")
        word = needle[1:].lower() if inverse else needle.lower()
        if not word:
            return rows
        return [r for r in rows if (word in f"{r.key} {r.name}".lower()) is not inverse]


def row_from(raw: Json) -> SessionRow:
    return SessionRow(
        text(raw, "key"),
        text(raw, "sessionId"),
        num(raw, "updatedAt"),
        text(raw, "displayName"),
        text(raw, "state", "idle"),
        text(raw, "activeRunId"),
        text(raw, "lastMessagePreview"),
        flag(raw, "abortedLastRun"),
        text(raw, "model") or text(obj(raw.get("model")), "name"),
        num(raw, "totalTokens"),
        num(raw, "contextTokens"),
    )


def short_key(key: str) -> str:
    """`agent:main:telegram:direct:42` → `telegram:42`; `agent:main:main` → `main`."""
    parts = key.split(":")
    if parts[0] == "agent" and len(parts) > 2:
        agent, rest = parts[1], [p for p in parts[2:] if p not in ("direct", "channel", "group")]
        name = ":".join(rest)
        return name if agent == "main" or name == agent else f"{agent}/{name}"
    return key
