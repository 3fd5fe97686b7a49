"""The one place that knows what is true on the screen. `apply` takes an event frame in O(1)
and marks panes dirty; painting pulls later. It never calls the engine and never paints."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct, field

from claw_engine.protocol.names import DEFAULT_SESSION
from claw_tui.store.approvals import Queue
from claw_tui.store.conversation import Conversation
from claw_tui.store.history import blocks_from_history
from claw_tui.store.interrupted import Interrupted, interrupted_from
from claw_tui.store.lanes import Lanes
from claw_tui.store.notices import (
    INTERRUPTED,
    PERMISSION,
    SHUTDOWN,
    Notice,
    added,
    notice_from,
    restated,
)
from claw_tui.store.rules import Rule, rules_from
from claw_tui.store.sessions import Sessions
from claw_tui.store.turns import run_of
from claw_tui.store.wire import Json, flag, num, obj, objs, text


class Pane(StrEnum):
    SESSIONS = "sessions"
    CONVERSATION = "conversation"
    LANES = "lanes"
    APPROVALS = "approvals"
    STATUS = "status"
    TOAST = "toast"
    RUNS = "runs"
    CALLS = "calls"


class Link(StrEnum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    LOST = "lost"


RECORDED = "recorded"
"""The mode of an engine that is a file: it can only be read."""


class Engine(Struct):
    """What `status` says, as far as the console shows it."""

    host: str = ""
    version: str = ""
    mode: str = ""
    model: str = ""
    is_ai: bool = True
    model_error: str = ""
    context_window: int = 0
    permission: str = "guarded"
    full_until_ms: int = 0
    """When the mode full ends; 0 in any other mode."""
    bypass: str = ""
    methods: frozenset[str] = frozenset()

    @property
    def recorded(self) -> bool:
        return self.mode == RECORDED


class Store(Struct):
    """`wake` is called after a change; the painter decides when to look at `dirty`."""

    selected: str = DEFAULT_SESSION
    sessions: Sessions = field(default_factory=Sessions)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    queue: Queue = field(default_factory=Queue)
    engine: Engine = field(default_factory=Engine)
    notices: list[Notice] = field(default_factory=list)
    interrupted: list[Interrupted] = field(default_factory=list)
    """Runs that a restart cut short and that wait for a decision."""
    rules: list[Rule] = field(default_factory=list)
    link: Link = Link.CONNECTING
    link_words: str = ""
    bells: int = 0
    """Requests that have not rung yet; the app rings and clears."""
    calls_heard: dict[str, int] = field(default_factory=dict)
    """How many beginnings and ends of calls and runs were heard, by session."""
    refetch: set[str] = field(default_factory=set)
    """What the link should ask the engine for again: sessions, interrupted, rules."""
    dirty: set[Pane] = field(default_factory=set)
    wake: Callable[[], None] = lambda: None

    # ── marking ─────────────────────────────────────────────────────────────────────────────

    def mark(self, *panes: Pane) -> None:
        self.dirty.update(panes)
        self.wake()

    def take_dirty(self) -> set[Pane]:
        dirty, self.dirty = self.dirty, set()
        return dirty

    # ── events ──────────────────────────────────────────────────────────────────────────────

    def apply(self, event: str, payload: object) -> None:
        """Take one event of the engine. Unknown events are left alone."""
        data = obj(payload)
        match event:
            case "trace":
                self._trace(data)
            case "exec.approval.requested":
                if self.queue.requested(data):
                    self.bells += 1
                self.mark(Pane.APPROVALS, Pane.STATUS, Pane.CONVERSATION)
            case "exec.approval.resolved":
                self._decided(data)
                self.mark(Pane.APPROVALS, Pane.STATUS, Pane.CONVERSATION)
            case "exec.approval.ran":
                self.queue.ran(data)
                self.mark(Pane.APPROVALS)
            case "exec.approvals.changed":
                self.refetch.add("rules")
                self.wake()
            case "lanes":
                self.lanes.apply(data)
                self.mark(Pane.LANES, Pane.STATUS)
            case "sessions.changed":
                self.refetch.add("sessions")
                self.wake()
            case "notice":
                self._notice(notice_from(data))
            case "shutdown":
                back = isinstance(data.get("restartExpectedMs"), int)
                words = f"the engine is {'restarting' if back else 'shutting down'}"
                self.notice("warn", words, text(data, "reason"), code=SHUTDOWN)
            case _:
                pass

    def _decided(self, data: Json) -> None:
        """A request ended; one that somebody else answered is said, so that nobody wonders."""
        left = self.queue.resolved(data)
        if text(data, "decision") == "allow-always":
            self.refetch.add("rules")
        who, how = text(data, "resolvedBy"), text(data, "decision")
        if left is not None and how and left.id not in self.queue.mine:
            words = {"allow-once": "allowed once", "allow-always": "allowed always"}
            self.notice("info", f"{words.get(how, 'denied')} by {who}: {left.command}")

    def _trace(self, data: Json) -> None:
        key, run_id, kind = text(data, "sessionKey"), text(data, "runId"), text(data, "kind")
        if not key or not run_id:
            return  # of no run: it may neither end one nor begin one that never ends
        ts, inner = num(data, "ts"), obj(data.get("data"))
        talk = self.conversation(key)
        if not talk.apply(run_id, num(data, "seq"), ts, kind, inner):
            return
        if key == self.selected:
            self.mark(Pane.CONVERSATION)
        state = {
            "run.queued": "queued",
            "run.started": "building",
            "run.ended": "done",
            "tool.waiting": "parked",
            "run.state": text(inner, "new"),
        }.get(kind)
        running = talk.active_run()
        others = running is not None and run_of(running.run_id) != run_id
        if state and not others and run_id not in talk.answered:  # else the row says it already
            self.sessions.run_state(key, run_id, state, ts)
            self.mark(Pane.SESSIONS, Pane.STATUS)
        if kind in ("run.ended", "call.ended", "call.started"):
            self._usage(key, inner)
            self.calls_heard[key] = self.calls_heard.get(key, 0) + 1
            self.mark(Pane.CALLS)

    def _usage(self, key: str, inner: Json) -> None:
        total = num(obj(inner.get("usage")), "total") or num(inner, "tokens")
        if total:
            self.sessions.ensure(key).tokens = total
            self.mark(Pane.STATUS)

    # ── answers ─────────────────────────────────────────────────────────────────────────────

    def connected(self, hello: Json) -> None:
        self.link, self.link_words = Link.CONNECTED, ""
        self.notices = [notice for notice in self.notices if notice.code != SHUTDOWN]
        methods = obj(hello.get("features")).get("methods")
        if isinstance(methods, list):
            self.engine.methods = frozenset(str(name) for name in methods)
        self.set_status(obj(hello.get("snapshot")))
        self.mark(*Pane)

    def lost(self, words: str) -> None:
        self.link, self.link_words = Link.LOST, words
        self.mark(*Pane)

    def set_status(self, status: Json) -> None:
        if not status:
            return
        engine, model = self.engine, obj(status.get("model"))
        engine.host = text(status, "host", engine.host)
        engine.version = text(status, "version", engine.version)
        engine.mode = text(status, "mode", engine.mode)
        engine.model = text(model, "name", engine.model)
        engine.is_ai = flag(model, "isAI", engine.is_ai)
        engine.model_error = text(model, "error")
        engine.context_window = num(model, "contextWindow", engine.context_window)
        engine.permission = text(status, "permissionMode", engine.permission)
        engine.full_until_ms = num(status, "fullUntilMs", engine.full_until_ms)
        engine.bypass = text(status, "bypassWarning")
        self.lanes.apply(status)
        if "notices" in status:
            standing = [notice_from(raw) for raw in objs(status.get("notices"))]
            self.notices = restated(self.notices, standing)
        sessions = obj(status.get("sessions"))
        if not self.sessions.rows and sessions:
            self.sessions.replace({"sessions": sessions.get("recent")})
        self.mark(Pane.STATUS, Pane.LANES, Pane.TOAST, Pane.SESSIONS)

    def set_sessions(self, payload: Json) -> None:
        self.sessions.replace(payload)
        self.mark(Pane.SESSIONS, Pane.STATUS)

    def set_history(self, key: str, payload: Json) -> None:
        blocks = blocks_from_history(objs(payload.get("messages")))
        self.conversation(key).reload(blocks, whole=flag(payload, "whole", False))
        self.mark(Pane.CONVERSATION)

    def set_live(self, payload: Json) -> None:
        """Replay of the runs that were going on when we subscribed. It is the whole truth about
        them: what was seen of them before is replaced, and a run that is not in it has ended
        while nobody listened; the stored history says how."""
        if "live" not in payload:
            return
        live = objs(payload.get("live"))
        ids = {text(run, "runId") for run in live}
        for conversation in self.conversations.values():
            for run_id in conversation.unfinished():
                conversation.forget_run(run_id)
                if run_id not in ids:
                    conversation.loaded = False
                    self.sessions.run_state(conversation.key, run_id, "done", 0)
        for run in live:
            for event in objs(run.get("events")):
                self.apply("trace", event)
        self.mark(Pane.CONVERSATION, Pane.SESSIONS)

    def set_approvals(self, payload: Json) -> None:
        if self.queue.replace(objs(payload.get("approvals"))):
            self.bells += 1
        self.mark(Pane.APPROVALS, Pane.STATUS, Pane.CONVERSATION)

    def set_approval_history(self, payload: Json) -> None:
        self.queue.replace_history(objs(payload.get("entries")))
        self.mark(Pane.APPROVALS)

    def set_interrupted(self, payload: Json) -> None:
        self.interrupted = interrupted_from(payload)
        self.mark(Pane.STATUS, Pane.TOAST, Pane.RUNS)

    def set_permission(self, payload: Json) -> None:
        """The answer of `permission.get` and `permission.set`."""
        if payload:
            self.engine.permission = text(payload, "mode", self.engine.permission)
            self.engine.full_until_ms = num(payload, "fullUntilMs")
            self.engine.bypass = text(payload, "bypassWarning")
            self.mark(*Pane)

    def set_rules(self, payload: Json) -> None:
        self.rules = rules_from(payload)
        self.mark(Pane.APPROVALS)

    def expire(self, now_ms: int) -> bool:
        """Drop requests whose time is over (the engine says so too, but it may be gone)."""
        over = self.queue.overdue(now_ms)
        for approval in over:
            self.queue.resolved({"id": approval.id, "status": "expired"})
        if over:
            self.mark(Pane.APPROVALS, Pane.STATUS)
        return bool(over)

    # ── own words ───────────────────────────────────────────────────────────────────────────

    def notice(
        self,
        level: str,
        title: str,
        words: str = "",
        hint: str = "",
        *,
        code: str = "",
        sticky: bool = False,
        ts_ms: int = 0,
    ) -> None:
        """Say something on the toast line; the newest is shown, all are kept (200)."""
        self._notice(Notice(code, level, title, words, hint, sticky, ts_ms))

    def dismiss(self) -> None:
        """What was only said in passing has been on the screen long enough."""
        self.notices = [notice for notice in self.notices if not notice.passing]
        self.mark(Pane.TOAST)

    def _notice(self, notice: Notice) -> None:
        self.notices = added(self.notices, notice)
        if notice.code == INTERRUPTED:
            self.refetch.add("interrupted")
        if notice.code == PERMISSION:
            self.refetch.add("permission")
        self.mark(Pane.TOAST)

    def select(self, key: str) -> None:
        self.selected = key
        self.sessions.ensure(key)
        self.mark(Pane.SESSIONS, Pane.CONVERSATION, Pane.STATUS)

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def conversation(self, key: str | None = None) -> Conversation:
        key = key or self.selected
        found = self.conversations.get(key)
        if found is None:
            found = self.conversations[key] = Conversation(key)
        return found

    def context_percent(self) -> int | None:
        """How full the selected session's context is, or nothing while that is unknown."""
        row = self.sessions.rows.get(self.selected)
        window = (row.context if row else 0) or self.engine.context_window
        if row is None or not row.tokens or not window:
            return None
        return min(999, round(100 * row.tokens / window))

    def busy(self) -> bool:
        """Whether something on the screen counts seconds: a wait, or a run of this session."""
        return bool(self.queue.pending) or self.conversation().active_run() is not None
