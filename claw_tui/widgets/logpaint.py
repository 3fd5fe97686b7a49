"""Paints records of the log: one a row in aligned columns, one with all its fields."""

from __future__ import annotations

from datetime import datetime

from rich.style import Style
from textual.strip import Strip

from claw_tui.store.logs import Record
from claw_tui.store.sanitize import line, tame
from claw_tui.widgets.cells import Span, clip, clip_left, pad, spans, wrap
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.rowlist import Row

WIDE = 100
"""Cells from which a row has milliseconds and a longer name."""
LONGEST = 20_000
"""Characters of a message that are shown; `c` copies all of it."""

PENS = {
    "fatal": ("bad", "br"),
    "error": ("bad", "b"),
    "warn": ("warn", "b"),
    "warning": ("warn", "b"),
    "info": ("muted", ""),
}


def log_row(record: Record, width: int, ink: Ink) -> Row:
    """Time, level letter, logger, message."""
    wide = width >= WIDE
    letter = record.level[:1].upper() or "·"
    name = record.logger.removeprefix("claw_engine.")
    cells = 24 if wide else 14
    words = "text" if record.rank > 1 else "muted"
    if record.level in ("error", "fatal"):
        words = "bad"
    left: list[Span] = [
        (f"{_time(record.at, wide)} ", ink("faint")),
        (letter, ink(*PENS.get(record.level, ("faint", "")))),
        (f" {pad(clip_left(line(name[-80:]), cells), cells)} ", ink("claw")),
        # What cannot be seen is not looked at: a line may be as long as a file.
        (line(record.message[: 2 * width]), ink(words)),
    ]
    return Row(left)


def _time(at: str, wide: bool) -> str:
    moment = local(at)
    if moment is None:
        return " " * (12 if wide else 8)
    return moment.strftime("%H:%M:%S") + (f".{moment.microsecond // 1000:03d}" if wide else "")


def local(at: str) -> datetime | None:
    """The moment in local time; None when it is none."""
    try:
        return datetime.fromisoformat(at).astimezone()
    except ValueError:
        return None


def record_lines(record: Record, width: int, ink: Ink) -> list[Strip]:
    """Everything that stands in the line, each field under its name."""
    moment = local(record.at)
    when = moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] if moment else record.at
    head: list[Span] = [(f" {line(when)}", ink("faint")), ("  ", Style.null())]
    if record.level:
        head.append((line(record.level[:12]), ink(*PENS.get(record.level, ("faint", "")))))
    head.append((f"  {line(record.logger[:200])}", ink("claw")))
    out = [spans(head), spans([])]
    out += _wrapped(record.message, width - 2, " ", ink("text"))
    fields = record.fields()
    if fields:
        out.append(spans([]))
    column = min(24, max((len(line(name)) for name, _ in fields), default=0))
    for name, value in fields:
        shown = f" {pad(clip(line(name), column), column)}  "
        if "\n" in value:  # a traceback
            out.append(spans([(shown, ink("faint"))]))
            out += _wrapped(value, width - 3, "  ", ink("output"))
            continue
        rows = wrap(tame(value[:LONGEST]), max(10, width - column - 4))
        out += [
            spans([(shown if n == 0 else " " * (column + 3), ink("faint")), (row, ink("text"))])
            for n, row in enumerate(rows)
        ]
    return out


def _wrapped(words: str, width: int, indent: str, pen: Style) -> list[Strip]:
    cut = words[:LONGEST]
    if len(words) > LONGEST:
        cut += f"… ({len(words):,} characters; c copies them)"
    return [spans([(f"{indent}{row}", pen)]) for row in wrap(tame(cut), width)]
