"""The one-line bars: status, title, toast and hints. Each draws one strip from the store."""

from __future__ import annotations

from rich.style import Style
from textual.app import RenderResult
from textual.strip import Strip
from textual.widget import Widget

from claw_tui.keymap import hints
from claw_tui.store.notices import INTERRUPTED
from claw_tui.store.sanitize import line, reveal_line
from claw_tui.store.sessions import short_key
from claw_tui.store.status import segments
from claw_tui.store.store import Link
from claw_tui.store.words import countdown, short_run, took
from claw_tui.widgets.cells import Span, clip, measure, pad, row, spans
from claw_tui.widgets.host import host

SPACE: Span = (" ", Style.null())


class Bar(Widget):
    """One line, no focus, no markup."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def draw(self, width: int) -> Strip:
        raise NotImplementedError

    def render(self) -> RenderResult:
        return ""

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y or not width:
            return Strip.blank(width, self.rich_style)
        strip = self.draw(width).adjust_cell_length(width, Style.null())
        return strip.apply_style(self.rich_style)


class StatusBar(Bar):
    """In every view and size: who, which model, what is allowed, what waits."""

    def draw(self, width: int) -> Strip:
        app = host(self)
        ink, store = app.ink, app.store
        pens = {
            "where": ink("text", "b"),
            "model": ink("claw"),
            "model_error": ink("bad", "b"),
            "perm": ink("good"),
            "full": ink("bad", "br"),
            "bypass": ink("warn"),
            "ctx": ink("muted"),
            "runs": ink("good", "b"),
            "waiting": ink("warn", "b"),
            "interrupted": ink("warn", "b"),
            "on": ink("good"),
            "off": ink("bad", "b"),
            "paused": ink("warn", "br"),
        }
        shown = segments(store, app.clock.now_ms(), width - 2, wide_bar=width >= 120)
        parts: list[Span] = [SPACE]
        for seg in shown:
            text = f" {seg.shown} " if seg.role in ("paused", "full") else seg.shown
            parts += [(text, pens[seg.role]), ("  ", Style.null())]
        return spans(parts[:-1])


class TitleBar(Bar):
    """The narrow layout's heading: which session and run, which pane of three."""

    pane = "conversation"
    index = 2
    below = ""
    """What is said about lines below the visible ones."""

    def draw(self, width: int) -> Strip:
        app = host(self)
        ink, store = app.ink, app.store
        left: list[Span] = [SPACE, (line(short_key(store.selected)), ink("claw", "b"))]
        active = store.conversation().active_run()
        if active is not None and active.run is not None:
            gone = took(max(0, app.clock.now_ms() - active.run.started_ms))
            left.append((f" · run {short_run(active.run_id)} · {gone}", ink("muted")))
        right = [(f"{self.pane} {self.index}/3   ", ink("muted")), ("‹ tab › ", ink("faint"))]
        if self.below and self.pane == "conversation":
            right.insert(0, (f"{self.below}   ", ink("key")))
        return row(width, left, right)


class Banner(Bar):
    """PAUSED and a lost connection, in every view; takes no line when there is nothing."""

    def on_mount(self) -> None:
        self.sync()

    def words(self) -> str:
        store = host(self).store
        if store.link is Link.LOST:
            why = f": {line(store.link_words)}" if store.link_words else ""
            return f"connection lost{why} · trying again, this is the last known state"
        if store.lanes.paused:
            return "PAUSED · no new run starts · P resumes"
        return ""

    def sync(self) -> None:
        words = self.words()
        self.display = bool(words)
        if words:
            self.refresh()

    def draw(self, width: int) -> Strip:
        store, ink = host(self).store, host(self).ink
        pen = ink("bad" if store.link is Link.LOST else "warn", "br")
        return spans([(pad(clip(f" {self.words()}", width), width), pen)])


class ToastBar(Bar):
    """The request that waits longest (the one F2 opens), else the newest thing the engine or the
    console said; with `said_only` requests are left to the status line."""

    said_only = False

    def draw(self, width: int) -> Strip:
        app = host(self)
        ink, store = app.ink, app.store
        card = store.queue.first()
        notice = store.notices[-1] if store.notices else None
        if card and not self.said_only and not (notice is not None and notice.level == "error"):
            first = card.head
            many = f" ×{card.count}" if card.count > 1 else ""
            left = [
                SPACE,
                ("⏸ ", ink("warn", "b")),
                (f"{line(first.kind)}  ", ink("warn")),
                (reveal_line(first.command), ink("text")),
                (many, ink("warn", "b")),
                (f"   {line(short_key(first.session) or first.client)}", ink("muted")),
            ]
            key = "a open " if app.facts().mode == "NAV" else "F2 open "
            wait = countdown(first.left_ms(app.clock.now_ms()))
            return row(width, left, [(f"  waits {wait}   ", ink("warn")), (key, ink("key"))])
        if notice is None:
            return spans([SPACE])
        pen = {"error": "bad", "warn": "warn"}.get(notice.level, "muted")
        sign = {"error": "✗", "warn": "⚠"}.get(notice.level, "·")
        parts = (notice.title, notice.text, notice.hint)
        page = ""
        if notice.code == INTERRUPTED and store.interrupted:
            parts, page = (notice.title, "", ""), ":interrupted"
        elif notice.sticky:
            page = ":notices"
        words = line(" · ".join(part for part in parts if part))
        right = [(f"  {page} ", ink("key"))] if page else []
        return row(width, [SPACE, (f"{sign} ", ink(pen, "b")), (words, ink(pen))], right)


class HintBar(Bar):
    """The keys that are valid now; why the last one was refused, until the next key."""

    def draw(self, width: int) -> Strip:
        app = host(self)
        ink = app.ink
        if app.refusal:
            return row(width, [SPACE, ("✗ ", ink("warn", "b")), (line(app.refusal), ink("warn"))])
        keys, last = hints(app.facts())
        right: list[Span] = []
        if last is not None:
            right = [(last[0], ink("key", "b")), (f" {last[1]} ", ink("muted"))]
        left: list[Span] = [SPACE]
        for key, label in keys:
            more: list[Span] = [(key, ink("key", "b")), (f" {label}   ", ink("muted"))]
            if measure(left) + measure(more) - 2 + measure(right) > width:
                break
            left += more
        return row(width, left, right)


class ModeBar(Bar):
    """TYPE or NAV, beside the composer."""

    DEFAULT_CSS = "ModeBar { width: 8; }"

    def draw(self, width: int) -> Strip:
        app = host(self)
        typing = app.facts().mode == "TYPE"
        pen = app.ink("user" if typing else "claw", "b")
        return spans([SPACE, ("TYPE" if typing else "NAV ", pen), (" ❯ ", app.ink("faint"))])
