"""Runs that a restart cut short: what was asked, what was going on, and what becomes of them.
Shows and asks; the application decides and calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.message import Message
from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.screens.listpage import ListPage
from claw_tui.store.interrupted import Interrupted, Step, said_last, steps_of, unknown
from claw_tui.store.sanitize import line, reveal_line, tame
from claw_tui.store.sessions import short_key
from claw_tui.store.words import clock
from claw_tui.widgets.cells import Span, clip, row, spans, wrap
from claw_tui.widgets.host import host
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.rowlist import Row

ABOUT_RESUME = (
    "r: the model reads the message again, and what is known of its calls. No call is repeated "
    "by the engine.  d: it stays in the conversation as it is."
)
UNKNOWN = "outcome unknown"
UNWRITTEN = (
    "nothing of its answer was written to the conversation; what had been said by then, :runs shows"
)


def step_lines(steps: Sequence[Step], width: int, ink: Ink) -> list[Strip]:
    """The calls, each with what is known of its end."""
    out = []
    for step in steps:
        words, pen = ("failed", "muted") if step.failed else ("ended", "faint")
        if step.unknown:
            words, pen = UNKNOWN, "warn"
        left: list[Span] = [
            (f"   {clip(line(step.name), 12):<6} ", ink("tool")),
            (reveal_line(step.words), ink("text")),
        ]
        out.append(row(width, left, [(f"  {words}", ink(pen, "b" if step.unknown else ""))]))
    return out


def resume_lines(run: Interrupted, steps: Sequence[Step], width: int, ink: Ink) -> list[Strip]:
    """What the page says that asks before a run with unknown calls is taken up again."""
    lost = unknown(steps)
    what = "call was" if len(lost) == 1 else "calls were"
    words = (
        f"{len(lost)} {what} going on when the engine stopped. Whether it happened is unknown: "
        "it may have, in part or not at all. The model is told so, and could do it again."
    )
    return [
        spans([(f" {clip(line(run.text), width - 2)}", ink("text"))]),
        spans([]),
        *step_lines(lost, width, ink),
        spans([]),
        *(spans([(f" {part}", ink("warn"))]) for part in wrap(words, width - 2)),
    ]


class InterruptedPage(ListPage):
    BINDINGS = bindings("runs")
    view = "interrupted"
    heading = "Interrupted runs"
    empty = "no run waits for a decision"
    about = "What was going on"

    @dataclass
    class Wanted(Message):
        """A key asked for something about `run`: resume, discard or open."""

        verb: str
        run: Interrupted

    @property
    def pane_name(self) -> str:
        return "runs"

    def chosen(self) -> Interrupted | None:
        runs = host(self).store.interrupted
        return runs[self.index] if self.index < len(runs) else None

    def steps(self, run: Interrupted) -> list[Step]:
        return steps_of(run, host(self).store.conversation(run.session).blocks)

    def rows(self) -> Sequence[Row]:
        ink, out = host(self).ink, []
        for run in host(self).store.interrupted:
            lost = len(unknown(self.steps(run)))
            right: list[Span] = [(f"  {lost} unknown", ink("warn", "b"))] if lost else []
            if self.size.width >= 60:
                right = [(f"  {clip(line(short_key(run.session)), 18)}", ink("muted")), *right]
            out.append(
                Row(
                    [
                        ("■ ", ink("warn")),
                        (f"{clock(run.since_ms):<6}", ink("faint")),
                        (line(run.text), ink("text")),
                    ],
                    right,
                )
            )
        return out

    def detail(self, width: int) -> list[Strip]:
        run = self.chosen()
        if run is None:
            return []
        ink, blocks = host(self).ink, host(self).store.conversation(run.session).blocks
        facts = [line(run.session), f"from {line(run.source)}"]
        if run.messages > 1:
            facts.append(f"{run.messages} messages, answered together")
        times = f"asked {clock(run.received_ms)} · found {clock(run.since_ms)}, after the restart"
        out = [
            spans([(f" {clip(' · '.join(facts), width)}", ink("muted"))]),
            spans([(f" {times}", ink("faint"))]),
            spans([]),
            *(spans([(f" {part}", ink("user"))]) for part in wrap(tame(run.text), width - 2)),
            spans([]),
        ]
        steps = self.steps(run)
        out += step_lines(steps, width, ink)
        said = said_last(run, blocks)
        if said:
            out.append(
                spans([("   said   ", ink("claw")), (clip(line(said), width - 12), ink("text"))])
            )
        if not steps and not said:
            read = host(self).store.conversation(run.session).loaded
            words = UNWRITTEN if read else "its conversation is not read yet"
            out += [spans([(f"   {part}", ink("faint"))]) for part in wrap(words, width - 5)]
        out.append(spans([]))
        out += [spans([(f" {part}", ink("muted"))]) for part in wrap(ABOUT_RESUME, width - 2)]
        return out

    # ── keys ────────────────────────────────────────────────────────────────────────────────

    def action_resume(self) -> None:
        self._ask("resume")

    def action_discard(self) -> None:
        self._ask("discard")

    async def action_open(self) -> None:
        self._ask("open")

    def _ask(self, verb: str) -> None:
        run = self.chosen()
        if run is None:
            host(self).refuse("no run waits for a decision")
        else:
            self.post_message(self.Wanted(verb, run))
