"""How one block looks: blocks in, strips out. Knows no widget and no scrolling."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from claw_tui.store.blocks import Block, BlockKind, RunInfo, ToolInfo, ToolStatus, summarize_args
from claw_tui.store.sanitize import line, tame
from claw_tui.store.words import clock, count, countdown, short_run, size, took
from claw_tui.widgets.cells import Span, clip, row, spans, wrap
from claw_tui.widgets.ink import Ink

LABEL = 13
"""Cells before the text of a message: who, when, and air."""
FOLDED_LINES = 6
"""Lines of tool output shown without opening it."""
PAGE_LINES = 200
"""Lines of an opened output on one page."""


class Markdowner(Protocol):
    def paint(self, text: str, width: int) -> list[Strip]: ...


class Look(Struct, frozen=True):
    """What the view adds to a block: open or folded, page, time, and the Markdown painter."""

    width: int
    ink: Ink
    now_ms: int = 0
    expanded: bool | None = None
    page: int = 0
    markdown: Markdowner | None = None
    gap: bool = False
    """Whether a blank line sets this block off from the one before."""
    rows: list[str] | None = None
    """Wrapped rows of an open block, kept by a Flow."""


def paint(block: Block, look: Look) -> list[Strip]:
    match block.kind:
        case BlockKind.USER:
            gap = [spans([])] if look.gap else []
            return gap + _message(block, look, "you", "user", "text")
        case BlockKind.TEXT:
            return _answer(block, look)
        case BlockKind.RUN:
            return [_run(block, look)]
        case BlockKind.CALL:
            from claw_tui.widgets.callpaint import call_line  # lazily: only past runs have them

            return [call_line(block.call, look.width, look.ink)] if block.call else []
        case BlockKind.REASONING:
            return _reasoning(block, look)
        case BlockKind.TOOL:
            return _tool(block, look)
        case BlockKind.ERROR:
            return _marked(block, look, "✗", "bad")
        case _:
            return _marked(block, look, "·", "muted")


def _label(block: Block, who: str, style: Style, ink: Ink) -> list[Span]:
    when = clock(block.ts_ms)
    return [(f"{who:<6}", style), (f"{when:<{LABEL - 6}}", ink("faint"))]


def _message(block: Block, look: Look, who: str, pen: str, words: str) -> list[Strip]:
    rows = wrap(tame(block.text.rstrip()), look.width - LABEL)
    return _labelled(block, look, who, look.ink(pen, "b"), look.ink(words), rows)


def _labelled(
    block: Block, look: Look, who: str, pen: Style, words: Style, rows: list[str]
) -> list[Strip]:
    out = []
    indent: list[Span] = [(" " * LABEL, Style.null())]
    for index, text in enumerate(rows):
        head = _label(block, who, pen, look.ink) if index == 0 else indent
        out.append(spans([*head, (text, words)]))
    return out


def _answer(block: Block, look: Look) -> list[Strip]:
    ink = look.ink
    if look.rows is not None:
        rows = [*look.rows[:-1], look.rows[-1] + "▌"]
        return _labelled(block, look, "claw", ink("claw", "b"), ink("text"), rows)
    text = tame(block.text.strip("\n"))
    if look.markdown is None:
        rows = wrap(text, look.width - LABEL)
        return _labelled(block, look, "claw", ink("claw", "b"), ink("text"), rows)
    out = []
    for index, strip in enumerate(look.markdown.paint(text, look.width - LABEL)):
        head = (
            spans(_label(block, "claw", ink("claw", "b"), ink))
            if index == 0
            else spans([(" " * LABEL, Style.null())])
        )
        out.append(Strip.join([head, strip]))
    return out


def _run(block: Block, look: Look) -> Strip:
    ink, run = look.ink, block.run or RunInfo()
    going = run.status == "running"
    bits = [f"run {short_run(block.run_id)}"] + (["resumed"] if run.resumed else [])
    if run.duration_ms is not None:
        bits.append(took(run.duration_ms))
    if run.tokens_in or run.tokens_out:
        bits.append(f"{count(run.tokens_in)} in / {count(run.tokens_out)} out")
        if run.cached and run.tokens_in:
            bits.append(f"cached {100 * run.cached // run.tokens_in}%")
    state = line(run.state if going else ("" if run.status == "done" else run.status))
    pen = {"failed": "bad", "aborted": "warn", "interrupted": "warn"}.get(run.status, "claw")
    left = [("▾ ", ink(pen if not going else "good")), (" · ".join(bits), ink("muted"))]
    if state == "parked":
        pen, state = "warn", "waits for you"
    elif going:
        pen = "good"
    right = [(state.replace("_", " "), ink(pen))] if state else []
    return row(look.width, left, right)


def _reasoning(block: Block, look: Look) -> list[Strip]:
    ink = look.ink
    text = tame(block.text.strip())
    seconds = took(block.duration_ms) if block.duration_ms else ""
    shown = bool(look.expanded)
    right = [(seconds, ink("faint"))] if seconds else []
    sign = "▾ " if shown else "▸ "
    head: list[Span] = [("  ", Style.null()), (sign, ink("think")), ("think  ", ink("think"))]
    if not shown:
        words = text.replace("\n", " ")
        if block.open:
            words = words[-max(0, look.width - 14) :]
        return [row(look.width, [*head, (words, ink("muted", "i"))], right)]
    body = wrap(text, look.width - 6)
    return [
        row(look.width, [*head, (f"{len(text)} chars", ink("faint"))], right),
        *(spans([("    │ ", ink("faint")), (words, ink("muted", "i"))]) for words in body),
    ]


_SIGNS = {
    ToolStatus.RUNNING: ("▶", "good"),
    ToolStatus.WAITING: ("⏸", "warn"),
    ToolStatus.OK: ("▸", "tool"),
    ToolStatus.ERROR: ("✗", "bad"),
    ToolStatus.SKIPPED: ("▫", "muted"),
    ToolStatus.ABORTED: ("■", "warn"),
    ToolStatus.INTERRUPTED: ("■", "warn"),
}


def _tool(block: Block, look: Look) -> list[Strip]:
    ink, tool = look.ink, block.tool or ToolInfo("", "tool", {})
    sign, pen = _SIGNS[tool.status]
    text = tame(block.text.rstrip("\n"))
    lines = text.split("\n") if text else []
    opened = look.expanded is True and bool(lines)
    folded = look.expanded is False or not lines
    if tool.status is ToolStatus.OK and not folded:
        sign = "▾"
    left: list[Span] = [
        ("  ", Style.null()),
        (f"{sign} ", ink(pen, "b" if pen == "warn" else "")),
        (f"{clip(line(tool.name), 12):<6} ", ink(pen if pen != "tool" else "tool")),
        (line(summarize_args(tool.args)), ink("text")),
    ]
    out = [row(look.width, left, _tool_right(tool, look))]
    if folded:
        return out
    width = look.width - 6
    if opened:
        return out + _page(lines, look, width)
    return out + _folded(block, lines, look, width)


def _tool_right(tool: ToolInfo, look: Look) -> list[Span]:
    ink = look.ink
    if tool.status is ToolStatus.WAITING:
        left = f"  {countdown(tool.expires_at_ms - look.now_ms)}" if tool.expires_at_ms else ""
        return [(f"waits for you{left}", ink("warn", "b"))]
    words = clip(line(tool.decision), max(12, look.width // 3))
    if tool.status is ToolStatus.ERROR and tool.exit_code:
        words = f"{words}  exit {tool.exit_code}" if words else f"exit {tool.exit_code}"
    elif tool.status in (ToolStatus.SKIPPED, ToolStatus.ABORTED, ToolStatus.INTERRUPTED):
        words = f"{words}  {tool.status}" if words else str(tool.status)
    pen = "bad" if tool.decision.startswith(("denied", "expired")) else "faint"
    return [(words, ink(pen)), (f"{took(tool.duration_ms):>8}", ink("faint"))]


def _output(words: str, look: Look, width: int) -> Strip:
    return spans([("    │ ", look.ink("faint")), (clip(words, width), look.ink("output"))])


def _page(lines: list[str], look: Look, width: int) -> list[Strip]:
    pages = max(1, -(-len(lines) // PAGE_LINES))
    page = max(0, min(look.page, pages - 1))
    shown = lines[page * PAGE_LINES : (page + 1) * PAGE_LINES]
    out = [
        spans([("    │ ", look.ink("faint")), (part, look.ink("output"))])
        for words in shown
        for part in wrap(words, width)
    ]
    if pages > 1:
        words = f"page {page + 1} of {pages}   h l other pages"
        out.append(spans([("    ╰ ", look.ink("faint")), (words, look.ink("muted"))]))
    return out


def _folded(block: Block, lines: list[str], look: Look, width: int) -> list[Strip]:
    if len(lines) <= FOLDED_LINES and block.body.total == len(block.text):
        return [_output(words, look, width) for words in lines]
    tail = lines[-(FOLDED_LINES - 1) :]
    hidden = f"… {len(lines)} lines, {size(block.body.total)} · enter opens"
    return [
        spans([("    │ ", look.ink("faint")), (clip(hidden, width), look.ink("muted"))]),
        *(_output(words, look, width) for words in tail),
    ]


def _marked(block: Block, look: Look, sign: str, pen: str) -> list[Strip]:
    rows = wrap(tame(block.text), look.width - 4)
    first = [
        spans([("  ", Style.null()), (f"{sign} ", look.ink(pen, "b")), (rows[0], look.ink(pen))])
    ]
    rest = [spans([("    ", Style.null()), (words, look.ink("muted"))]) for words in rows[1:]]
    return first + rest
