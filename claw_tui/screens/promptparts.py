"""What view 2 knows of the parts of a call and how it gets it: the text of one, where words occur,
the clipboard, the editor. Asks the engine; paints nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from claw_tui.screens.promptcalls import Ask, PromptCalls
from claw_tui.store.requests import ENVELOPE, CallInfo, Match, PartInfo, matches_from
from claw_tui.store.wire import flag, num, text
from claw_tui.widgets.host import host
from claw_tui.widgets.pagedtext import PAGE_CHARS, PagedText

COPY_CHARS = 200_000
"""A terminal's clipboard takes little more; what is cut off is said."""
Edit = Callable[[PartInfo], Awaitable[str]]
"""Lets the operator edit a part's file; says what the next run will show. Raises ClawError."""


class PromptParts(PromptCalls):
    """Subclasses compose a PagedText."""

    def __init__(self, ask: Ask, edit: Edit, call_id: str = "") -> None:
        super().__init__(ask, call_id)
        self._edit = edit
        self.opened: PartInfo | None = None
        self.opened_in = CallInfo("")
        self.opened_match: int | None = None
        self.hidden = False
        self.needle = ""
        self.matches: list[Match] = []
        self.found = 0

    # ── one part ────────────────────────────────────────────────────────────────────────────

    def open_part(self, part: PartInfo, at: int | None = None, match: int | None = None) -> None:
        call = self._call_of(part)
        if call is None:
            return
        self.opened, self.opened_in, self.hidden = part, call, False
        self.opened_match = match
        if self.section != "text":
            self.enter("text")
        needle = self.needle if match is not None else ""
        self.query_one(PagedText).begin(f"{call.id}\n{part.id}", at, needle)
        self.show()

    def _call_of(self, part: PartInfo) -> CallInfo | None:
        """Which of the calls on the screen has the part: of two, the newer one."""
        compared = self.comparison
        if self.list_section == "compare" and compared is not None:
            return compared.b if any(pair.b == part for pair in compared.pairs) else compared.a
        return self.request.call if self.request is not None else None

    def open_neighbour(self, step: int) -> None:
        parts = self.request.parts if self.request is not None else ()
        if self.list_section != "parts" or self.opened not in parts:
            host(self).refuse("esc, then open another one")
            return
        place = parts.index(self.opened) + step
        if not 0 <= place < len(parts) or parts[place].kind == ENVELOPE:
            host(self).refuse("there is no part before it" if step < 0 else "the last part")
            return
        self.cursor = place
        self.open_part(parts[place])

    def open_match(self, place: int) -> None:
        if not 0 <= place < len(self.matches):
            host(self).refuse("the first match" if place < 0 else "the last match")
            return
        match = self.matches[place]
        parts = self.request.parts if self.request is not None else ()
        part = next((part for part in parts if part.id == match.part), None)
        if part is not None:
            self.cursor = place
            self.open_part(part, match.offset, place)

    def on_paged_text_needed(self, message: PagedText.Needed) -> None:
        self._work("text", self._page, message.subject, message.offset)

    async def _page(self, subject: str, offset: int) -> None:
        call_id, _, part_id = subject.partition("\n")
        params = {"callId": call_id, "partId": part_id, "offset": offset, "limit": PAGE_CHARS}
        raw = await self._ask("trace.part", params)
        pane = self.query_one(PagedText)
        if pane.subject != subject:
            return
        pane.take(num(raw, "offset"), text(raw, "text"), num(raw, "chars"))
        self.hidden = flag(raw, "redacted")
        if self.hidden:
            self.redacted.add(part_id)
        self.show()

    def copy(self, part: PartInfo) -> None:
        self._work("copy", self._copy, part)

    async def _copy(self, part: PartInfo) -> None:
        call = self.opened_in if self.section == "text" else self._call_of(part)
        if call is None:
            return
        params = {"callId": call.id, "partId": part.id, "offset": 0, "limit": COPY_CHARS}
        raw = await self._ask("trace.part", params)
        words, chars = text(raw, "text"), num(raw, "chars")
        self.app.copy_to_clipboard(words)
        cut = f"the first {len(words):,} of {chars:,}" if len(words) < chars else f"{chars:,}"
        host(self).store.notice("info", f"copied {cut} characters of {part.label}")

    def edit(self, part: PartInfo) -> None:
        self._work("edit", self._edited, part)

    async def _edited(self, part: PartInfo) -> None:
        self.note = await self._edit(part)
        self.show()

    # ── searching ───────────────────────────────────────────────────────────────────────────

    def search(self, words: str) -> None:
        self._work("search", self._search, words)

    async def _search(self, words: str) -> None:
        if self.request is None:
            return
        params = {"callId": self.request.call.id, "text": words, "limit": 200}
        raw = await self._ask("trace.search", params)
        self.needle, self.matches, self.found = words, matches_from(raw), num(raw, "total")
        if not self.matches:
            host(self).refuse(f"“{words}” is nowhere in this request")
            self.show()
            return
        self._trail.clear()
        self.section = "parts"
        self.enter("matches")
