"""How a call to a model looks in a past run, and the time bar under it."""

from __future__ import annotations

from textual.strip import Strip

from claw_tui.store.blocks import CallNode
from claw_tui.store.sanitize import line
from claw_tui.store.words import count, took
from claw_tui.widgets.cells import Span, row, spans
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.promptpaint import cost_words


def call_line(call: CallNode, width: int, ink: Ink) -> Strip:
    """Number, why, how much went in and out, how long until the first word."""
    basis = "" if call.measured else "~"
    bits = [f"{basis}{count(call.tokens)} in" + (f" / {count(call.output)} out"
                                                  if call.output else "")]  # fmt: skip
    if call.cached and call.tokens:
        bits.append(f"cached {100 * call.cached // call.tokens}%")
    if call.ttft_ms is not None:
        bits.append(f"first token {took(call.ttft_ms)}")
    if call.cost is not None:
        bits.append(cost_words(call.cost))
    left: list[Span] = [
        (" ◇ ", ink("accent")),
        (f"call {call.number} ", ink("accent", "b")),
        (f"{line(call.cause.replace('_', ' '))}  ", ink("text")),
        (" · ".join(bits), ink("muted")),
    ]
    if call.error:
        left.append((f" · {line(call.error)}", ink("bad")))
    return row(width, left, [(f"{took(call.duration_ms):>8}", ink("faint"))])


def time_bar(
    at_ms: int, whole_ms: int, step: tuple[int, int], *, playing: bool, speed: float,
    width: int, ink: Ink, real_ms: int | None = None,
) -> Strip:  # fmt: skip
    """Where in the run we are: the time, the step, and how fast it is played. `real_ms`: how long
    it took when that is more than it is played in."""
    left: list[Span] = [(" ▶ " if playing else " ⏸ ", ink("good" if playing else "warn", "b"))]
    shortened = real_ms is not None and real_ms > whole_ms + 1000
    right: list[Span] = [
        (f" {seconds(at_ms)} / {seconds(whole_ms)}", ink("text")),
        (f" (took {took(real_ms)})" if shortened else "", ink("faint")),
        (f"  ×{speed:g}", ink("key")),
        (f"  step {step[0]}/{step[1]} ", ink("muted")),
    ]
    room = max(4, width - 3 - sum(len(words) for words, _ in right) - 1)
    done = room if at_ms >= whole_ms else round(room * at_ms / max(1, whole_ms))
    left += [("━" * done, ink("key")), ("●", ink("key", "b")), ("─" * (room - done), ink("faint"))]
    return spans([*left, *right])


def seconds(ms: int) -> str:
    return f"{ms // 60_000}:{ms % 60_000 / 1000:04.1f}"
