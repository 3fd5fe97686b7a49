"""View 2: what was sent to the model. The request as a bar and its parts, one part's text, two
calls compared, the calls of a run, what a search found. Shows and moves; `promptcalls.py` and
`promptparts.py` ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize, ScreenResume
from textual.strip import Strip

from claw_tui.keymap import bindings
from claw_tui.screens.promptparts import PromptParts
from claw_tui.store.requests import ENVELOPE, FILES, PartInfo
from claw_tui.store.sanitize import line
from claw_tui.store.store import Pane
from claw_tui.store.words import count, size
from claw_tui.widgets.bars import Banner, HintBar, StatusBar, ToastBar
from claw_tui.widgets.cells import row, spans, wrap
from claw_tui.widgets.comparepaint import compare_head, line_row
from claw_tui.widgets.host import host
from claw_tui.widgets.lineview import Lines, set_title
from claw_tui.widgets.pagedtext import PagedText
from claw_tui.widgets.promptpaint import call_name, call_row, head_lines, match_row, part_row
from claw_tui.widgets.rowlist import LazyRows, Row, RowList

TALL = 32
"""Rows of the screen from which the list stays above an opened part."""
LISTED = 9

OFF = (
    "Requests are not recorded: claw.trace.enabled is false.",
    "Turn it on with\n\n    claw config set claw.trace.enabled true\n\n"
    "Runs that begin after it are "
    "recorded. Nothing that is sent to a model changes by it.",
)
STOPPED = (
    "claw.trace.enabled is on: it begins again with the engine's next start, or when a setting of "
    "claw.trace changes."
)
NONE = (
    "Nothing was sent to a model in this session yet.",
    "i writes a message; what its run sends to the model is shown here, part by part.",
)


class PromptScreen(PromptParts):
    CSS_PATH = "prompt.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("rows"), *bindings("prompt")]
    view = "2"

    @property
    def pane_name(self) -> str:
        if self.section == "parts":
            return "prompt" if self.request is not None else "prompt off"
        return f"prompt {self.section}"

    def compose(self) -> ComposeResult:
        yield StatusBar()
        yield Banner()
        yield Lines("head")
        yield RowList("list")
        yield PagedText("text")
        said = ToastBar()
        said.said_only = True
        yield said
        yield HintBar()

    @property
    def listed(self) -> RowList:
        return self.query_one("#list", RowList)

    @property
    def text(self) -> PagedText:
        return self.query_one(PagedText)

    # ── showing ─────────────────────────────────────────────────────────────────────────────

    def pull(self, dirty: set[Pane]) -> bool:
        super().pull(dirty)
        self.follow_up()
        if self.is_mounted and self.size.width:
            self.show()
        self.query_one(ToastBar).refresh()
        return False

    def show(self) -> None:
        reading = self.section == "text"
        self.set_class(reading, "-text")
        self.text.display = reading
        tall = self.size.height >= TALL
        nothing = self.section == "parts" and self.request is None
        self.listed.display = not nothing and (not reading or tall)
        self.listed.styles.height = LISTED + 2 if reading else "1fr"
        self.query_one("#head", Lines).show(self._head(max(20, self.size.width)))
        rows, title, side = self._listed()
        set_title(self.listed, title, side)
        self.cursor = max(0, min(self.cursor, len(rows) - 1))
        self.listed.show(rows, self.cursor)
        if reading:
            self._text_title()
        self.query_one(HintBar).refresh()

    def _head(self, width: int) -> list[Strip]:
        ink = host(self).ink
        if self.section == "compare" and self.comparison is not None:
            return compare_head(self.comparison, width, ink)
        if self.section == "text" and self.opened is not None:
            return self._part_head(self.opened, width)
        if self.section in ("calls", "pick", "matches"):
            return [row(width, [(f" {line(self._sentence())}", ink("text"))])]
        if self.request is not None:
            return head_lines(
                self.request, width, ink, following=self.following, note=self.note,
                recorded=host(self).store.engine.recorded,
            )  # fmt: skip
        title, words = self._why_empty()
        shown = [spans([]), spans([(f"  {title}", ink("text", "b"))]), spans([])]
        return shown + [spans([(f"  {t}", ink("muted"))]) for t in wrap(words, min(76, width - 4))]

    def _why_empty(self) -> tuple[str, str]:
        if not self.loaded:
            return "…", ""
        if self.problem:
            return self.problem
        if self.stopped:
            return f"Requests are not recorded: {line(self.stopped)}.", STOPPED
        return NONE if self.recording else OFF

    def _sentence(self) -> str:
        name = call_name(self.request.call) if self.request else ""
        match self.section:
            case "pick":
                return f"Compare {name} with: enter takes it"
            case "calls" if self.of_run and self.request:
                return f"Calls of this run, the newest first; tab: all of {self.session}"
            case "calls":
                return f"Calls of {self.session}, the newest first"
            case _:
                more = f", the first {len(self.matches)}" if self.found > len(self.matches) else ""
                return f"“{self.needle}” in {name}: {self.found} found{more}"

    def _part_head(self, part: PartInfo, width: int) -> list[Strip]:
        ink = host(self).ink
        bits = f" · {size(part.bytes)} · {count(part.tokens)} tokens (estimated)"
        where = [(f" {line(part.source)}", ink("faint"))]
        if self.note:
            where = [(f" {line(self.note)}", ink("key"))]
        elif self.hidden:
            words = "redacted: secrets are hidden in this text, the sizes are the original's "
            where = [(f" {words}", ink("warn"))]
        elif part.kind not in FILES:
            where = [(f" {line(call_name(self.opened_in))}", ink("faint"))]
        return [
            row(width, [(f" {line(part.label)}", ink("claw", "b")), (bits, ink("muted"))]),
            row(width, where),
        ]

    def on_paged_text_moved(self, message: PagedText.Moved) -> None:
        if self.section == "text":
            self._text_title()

    def _text_title(self) -> None:
        place = ""
        if self.opened_match is not None:
            place = f"match {self.opened_match + 1} of {len(self.matches)} · "
        chars = f"{self.text.chars:,} characters" if self.text.chars else ""
        title = self.opened.name or self.opened.kind if self.opened else ""
        set_title(self.text, title, f"{place}{chars} · {self.text.share}" if chars else "")

    def _listed(self) -> tuple[Sequence[Row], str, str]:
        """The rows of the list, its title, and what stands at its lower edge."""
        ink, width = host(self).ink, self.size.width - 3
        section = self.list_section
        if section == "compare":
            lines = self.lines
            paint: Callable[[int], Row] = lambda at: line_row(lines[at], width, ink)  # noqa: E731
            return LazyRows(len(lines), paint), "Compared", "" if self.built else "…"
        if section in ("calls", "pick"):
            calls, now = self.calls, self.request.call.id if self.request else ""
            paint = lambda at: call_row(  # noqa: E731
                calls[at],
                calls[at + 1] if at + 1 < len(calls) else None,
                width,
                ink,
                here=calls[at].id == now,
            )
            more = "more below" if self.calls_next is not None else ""
            return LazyRows(len(calls), paint), "Calls", more
        request = self.request
        if section == "matches" and request is not None:
            paint = lambda at: match_row(self.matches[at], request.parts, width, ink)  # noqa: E731
            return LazyRows(len(self.matches), paint), "Found", ""
        if request is None:
            return [], "Prompt", ""
        paint = lambda at: part_row(  # noqa: E731
            request, at, width, ink, redacted=request.parts[at].id in self.redacted
        )
        side = f"{self.cursor + 1} of {len(request.parts)}"
        return LazyRows(len(request.parts), paint), "Parts, as they were sent", side

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        self.show()
        if self.comparison is not None:
            self.build_lines()

    def on_screen_resume(self, event: ScreenResume) -> None:
        self.follow_up()
        host(self).store.mark(Pane.CALLS)

    # ── keys ────────────────────────────────────────────────────────────────────────────────

    def action_move(self, step: int) -> None:
        if self.section == "text":
            self.text.turn(step)
        else:
            self._select(self.cursor + step)

    def action_scroll(self, step: int) -> None:
        if self.section == "text":
            self.text.turn(step * max(1, self.text.size.height - 2))
        else:
            self._select(self.cursor + step * max(1, self.listed.size.height - 1))

    def action_edge(self, where: int) -> None:
        if self.section == "text":
            self.text.edge(where)
        else:
            self._select(0 if where < 0 else 1 << 30)

    def _select(self, place: int) -> None:
        self.cursor = place
        self.show()
        if self.section in ("calls", "pick") and self.cursor >= len(self.calls) - 2:
            self.more_calls()

    def selected_part(self) -> PartInfo | None:
        """The part that is read or under the cursor."""
        if self.section == "text":
            return self.opened
        if self.section == "parts" and self.request is not None and self.request.parts:
            return self.request.parts[min(self.cursor, len(self.request.parts) - 1)]
        if self.section == "compare" and self.cursor < len(self.lines):
            pair = self.lines[self.cursor].pair
            return pair.part if pair is not None else None
        return None

    async def action_open(self) -> None:
        match self.section:
            case "parts" | "compare":
                self._open_part(self.selected_part())
            case "calls" if self.calls:
                self.go_to(self.calls[self.cursor].id)
            case "pick" if self.calls:
                self.compare_with(self.calls[self.cursor])
            case "matches" if self.matches:
                self.open_match(self.cursor)
            case _:
                host(self).refuse("this is all of it")

    def _open_part(self, part: PartInfo | None) -> None:
        if part is None:
            host(self).refuse("= unfolds the parts that are the same")
        elif part.kind == ENVELOPE:
            host(self).refuse("no text: the keys, punctuation and parameters around the parts")
        else:
            self.open_part(part)

    async def action_back(self) -> None:
        if self.leave():
            return
        if self.over:
            await self.app.pop_screen()
        else:
            await self.app.run_action("app.view('1')")

    def action_leaf(self, step: int) -> None:
        if self.section != "text":
            host(self).refuse("enter opens a part first")
        elif self.opened_match is not None:
            self.open_match(self.opened_match + step)
        else:
            self.open_neighbour(step)

    def action_call(self, step: int) -> None:
        if self.section != "parts":
            host(self).refuse("esc first: [ ] change the call in the list of parts")
        else:
            self.neighbour(step)

    def action_follow(self) -> None:
        self.newest()

    def action_calls(self) -> None:
        if self.section == "calls" and self.of_run:
            self.list_calls(of_run=False)
        elif self.section == "calls":
            self.leave()
        elif self.section == "parts" and self.request is not None:
            self.list_calls(of_run=True)
        else:
            host(self).refuse("esc first: tab lists the calls from the parts")

    def action_compare(self) -> None:
        if self.section == "compare":
            self.unfold = not self.unfold
            self.build_lines()
        elif self.section == "calls" and self.calls:
            self.compare_with(self.calls[self.cursor])
        elif self.request is not None:
            self.list_calls(of_run=False, pick=True)
        else:
            host(self).refuse("there is no call to compare")

    def action_search(self) -> None:
        from claw_tui.screens.ask import Prompt

        if self.request is None:
            host(self).refuse("there is no request to search")
            return

        def done(text: str | None) -> None:
            if text and text.strip():
                self.search(text)

        self.app.push_screen(
            Prompt("Search this request", self.needle, hint="enter · esc back"), done
        )

    def action_edit(self) -> None:
        part = self.selected_part()
        if part is None:
            host(self).refuse("select a part first")
        elif part.kind not in FILES:
            host(self).refuse(f"no file behind it: {line(part.label)}; files and skills have one")
        else:
            self.edit(part)

    def action_copy_part(self) -> None:
        part = self.selected_part()
        if part is None or part.kind == ENVELOPE:
            host(self).refuse("select a part with text first")
        else:
            self.copy(part)
