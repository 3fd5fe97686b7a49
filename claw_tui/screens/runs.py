"""`:runs`: past runs of the session from the trace store, newest first. `enter` opens one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from textual.strip import Strip

from claw_engine.errors import ClawError
from claw_tui.screens.listpage import ListPage
from claw_tui.screens.page import run_alone
from claw_tui.screens.promptcalls import Ask
from claw_tui.store.replay import PastRun, run_from
from claw_tui.store.sanitize import line, tame
from claw_tui.store.wire import flag, maybe_num, objs, text
from claw_tui.store.words import clock, count, day, short_run, size, took
from claw_tui.widgets.cells import Span, clip, spans, wrap
from claw_tui.widgets.host import host
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.promptpaint import cost_words
from claw_tui.widgets.rowlist import Row, RowList

PAGE = 50
SIGNS = {
    "done": ("✓", "good"),
    "failed": ("✗", "bad"),
    "aborted": ("■", "warn"),
    "interrupted": ("■", "warn"),
    "running": ("●", "good"),
}


def run_lines(run: PastRun, width: int, ink: Ink) -> list[Strip]:
    """Everything about a run but its steps."""
    status = f"{run.status} · {run.stop_reason}" if run.stop_reason else run.status
    facts = [("began", day(run.started_ms)), ("took", took(run.duration_ms)),
             ("status", line(status)), ("model", line(run.model)),
             ("from", f"{line(run.source)} · {line(run.cause)}"),
             ("calls", f"{run.calls} to the model, {run.tools} of tools"),
             ("sent", f"{size(run.body_bytes)} · {_tokens(run)}"),
             ("waited", _waits(run)), ("cost", cost_words(run.cost)),
             ("parent", line(run.parent))]  # fmt: skip
    out = [spans([(f" {part}", ink("user"))]) for part in wrap(tame(run.title), width - 2)[:4]]
    out.append(spans([]))
    out += [
        spans([(f" {name:<8}", ink("faint")), (clip(words, width - 10), ink("text"))])
        for name, words in facts
        if words.strip(" ·")
    ]
    if run.error:
        out.append(spans([]))
        out += [spans([(f" {part}", ink("bad"))]) for part in wrap(tame(run.error), width - 2)]
    return out


def _tokens(run: PastRun) -> str:
    if not run.sent:
        return f"{run.estimated:,} tokens (estimated)"
    share = f", cached {100 * run.cached // run.sent}%" if run.cached else ""
    return f"{run.sent:,} tokens in, {run.output:,} out (measured){share}"


def _waits(run: PastRun) -> str:
    waits = ((run.queue_ms, "for its turn"), (run.parked_ms, "for the operator"))
    return ", ".join(f"{took(ms)} {why}" for ms, why in waits if ms >= 100)


class RunsPage(ListPage):
    view = "runs"
    heading = "Past runs of this session"
    about = "This run"

    def __init__(self, ask: Ask, open_run: Callable[[str], Awaitable[None]]) -> None:
        super().__init__()
        self._ask, self._open_run = ask, open_run
        self.runs: list[PastRun] = []
        self._next: int | None = None
        self.empty = "…"

    @property
    def pane_name(self) -> str:
        return "past"

    def on_mount(self) -> None:
        self._more(None)

    def _more(self, before: int | None) -> None:
        self._next = None
        run_alone(self, "runs", partial(self._read, before))

    async def _read(self, before: int | None) -> None:
        params: dict[str, object] = {"sessionKey": host(self).store.selected, "limit": PAGE}
        if before is not None:
            params["before"] = before
        try:
            found = await self._ask("trace.list", params)
        except ClawError as error:
            self.empty = line(error.title)
            self.show()
            return
        self.runs += [run_from(row) for row in objs(found.get("runs"))]
        self._next = maybe_num(found, "next")
        self.empty = "no run of this session is recorded"
        if not flag(found, "enabled", True):
            why = line(text(found, "why"))
            if not why or "claw.trace.enabled" in why:
                why = "claw config set claw.trace.enabled true"
            self.empty = f"runs are not recorded: {why}"
        self.show()

    def show(self) -> None:
        self.query_one(RowList).empty = self.empty
        super().show()

    def rows(self) -> Sequence[Row]:
        ink = host(self).ink
        return [self._row(run, ink) for run in self.runs]

    def _row(self, run: PastRun, ink: Ink) -> Row:
        sign, pen = SIGNS.get(run.status, ("·", "muted"))
        calls = f"{run.calls} call{'s' if run.calls != 1 else ''}"
        right: list[Span] = [
            (f"  {calls:>9}", ink("muted")),
            (f"{count(run.sent or run.estimated):>8}", ink("text")),
            (f"{took(run.duration_ms):>10}", ink("faint")),
        ]
        return Row(
            [
                (f"{sign} ", ink(pen, "b")),
                (f"{clock(run.started_ms):<6}", ink("faint")),
                (f"{short_run(run.id)}  ", ink("muted")),
                (line(run.title), ink("text")),
            ],
            right,
        )

    def detail(self, width: int) -> list[Strip]:
        return run_lines(self.runs[self.index], width, host(self).ink)

    def _select(self, index: int) -> None:
        super()._select(index)
        if self._next is not None and self.index >= len(self.runs) - 5:
            self._more(self._next)

    async def action_open(self) -> None:
        if self.runs:
            await self._open_run(self.runs[self.index].id)
        else:
            host(self).refuse("there is no run to open")
