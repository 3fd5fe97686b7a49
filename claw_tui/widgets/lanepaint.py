"""Paints lanes and the runs in them: one a row, and everything about one."""

from __future__ import annotations

from collections.abc import Mapping

from textual.strip import Strip

from claw_tui.store.lanes import Lane, LaneRun, sparkline
from claw_tui.store.sanitize import line, tame
from claw_tui.store.sessions import short_key
from claw_tui.store.words import age, clock, short_run
from claw_tui.widgets.cells import Span, clip, pad, spans, wrap
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.rowlist import Row

SIGNS = {"running": ("●", "good"), "queued": ("…", "warn"), "parked": ("⏸", "warn")}
SPARK = 12
"""Samples in a row."""
AHEAD = 4
"""Runs named of those that go before one."""


def lane_row(lane: Lane, width: int, ink: Ink) -> Row:
    """Name, used of its width, what waits, the load of the last reports, the last wait."""
    pen = "good" if lane.active else "text"
    used = f"{lane.active}/{lane.width}"
    left: list[Span] = [
        (f" {pad(line(lane.name), 10)}", ink("text", "b")),
        (f"{used:<8}", ink(pen, "b" if lane.active else "")),
        (f"queued {lane.queued:<5}", ink("warn" if lane.queued else "faint")),
        (f"parked {lane.parked:<5}", ink("warn" if lane.parked else "faint")),
        (sparkline(list(lane.load), 20 if width >= 100 else SPARK), ink("claw")),
    ]
    right: list[Span] = [(f"waited {lane.wait_ms} ms", ink("faint"))] if lane.wait_ms else []
    return Row(left, right)


def run_row(run: LaneRun, words: str, place: int, now_ms: int, width: int, ink: Ink) -> Row:
    """State, lane, session, first words, how long it has been so."""
    sign, pen = SIGNS[run.group]
    state = f"queued {place + 1}" if run.group == "queued" else run.group
    left: list[Span] = [
        (f" {sign} ", ink(pen, "b")),
        (f"{state:<10}", ink(pen)),
        (f"{pad(line(run.lane), 9)} ", ink("muted")),
        (f"{pad(line(short_key(run.session)), 24 if width >= 100 else 14)}  ", ink("claw")),
        (line(words[: 2 * width]), ink("text")),
    ]
    return Row(left, [(f"  {age(now_ms - run.since_ms)}", ink("faint"))])


def parting_row(runs: int, ink: Ink) -> Row:
    words = " what runs and waits" if runs else " nothing runs, nothing waits"
    return Row([(words, ink("faint"))])


def lane_lines(lane: Lane, width: int, ink: Ink, *, paused: bool) -> list[Strip]:
    slots = (
        f"{lane.active} of {lane.width} slots used · {lane.queued} queued · {lane.parked} parked"
    )
    out = [
        spans([(f" {clip(line(lane.name), 20)}", ink("text", "b")), (f"  {slots}", ink("muted"))]),
        spans([(" load  ", ink("faint")), (sparkline(list(lane.load), width), ink("claw")),
               ("  of the last reports, the newest on the right", ink("faint"))]),
    ]  # fmt: skip
    about = "A parked run waits for you or for a run it started, and holds no slot."
    if paused:
        about = "PAUSED: nothing new starts in any lane; what runs goes on. P resumes."
    elif lane.queued and lane.active >= lane.width:
        about = "Every slot is used: + lets one more run at once."
    return [*out, *(spans([(f" {part}", ink("muted"))]) for part in wrap(about, width - 2))]


def run_lines(
    run: LaneRun, words: str, ahead: Mapping[str, str], width: int, ink: Ink
) -> list[Strip]:
    """`ahead`: what those asked for that go before it, by run id."""
    facts = [f"run {short_run(run.id)}", f"{run.state} since {clock(run.since_ms)}", run.lane]
    if run.parent:
        facts.append(f"started by run {short_run(run.parent)}")
    out = [
        spans([(f" {clip(line(run.session), width - 2)}", ink("claw", "b"))]),
        spans([(f" {clip(line(' · '.join(facts)), width - 2)}", ink("faint"))]),
    ]
    shown = tame(words) or "its message is not known here; enter opens the session"
    out += [spans([(f" {part}", ink("user" if words else "faint"))])
            for part in wrap(shown, width - 2)[:6]]  # fmt: skip
    for run_id, asked in list(ahead.items())[:AHEAD]:
        name = f" behind {short_run(run_id)}  "
        out.append(spans([(name, ink("faint")), (clip(line(asked), width - 16), ink("muted"))]))
    if len(ahead) > AHEAD:
        out.append(spans([(f" and behind {len(ahead) - AHEAD} more", ink("faint"))]))
    return out
