"""`:notices`: everything that stands, with its text and hint in full. The toast line has room
for one sentence; a configuration banner has a whole diff."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from claw_tui.screens.listpage import ListPage
from claw_tui.store.notices import INTERRUPTED, Notice, standing
from claw_tui.store.sanitize import line, tame
from claw_tui.store.words import clock
from claw_tui.widgets.cells import spans, wrap
from claw_tui.widgets.host import host
from claw_tui.widgets.ink import Ink
from claw_tui.widgets.rowlist import Row

SIGNS = {"error": ("✗", "bad"), "warn": ("⚠", "warn")}


def notice_lines(notice: Notice, width: int, ink: Ink) -> list[Strip]:
    """Title, text and hint, nothing left out; lines of a diff in its colours."""
    _, pen = SIGNS.get(notice.level, ("·", "muted"))
    out = [spans([(f" {part}", ink(pen, "b"))]) for part in wrap(tame(notice.title), width)]
    if notice.text:
        out.append(spans([]))
    for words in tame(notice.text).split("\n") if notice.text else ():
        pen = {"+": "good", "-": "bad"}.get(words[:1], "text")
        out += [spans([(f" {part}", ink(pen))]) for part in wrap(words, width)]
    if notice.hint:
        out.append(spans([]))
        out += [spans([(f" {part}", ink("muted"))]) for part in wrap(tame(notice.hint), width)]
    out += [spans([]), spans([(f" {line(notice.code)}", ink("faint"))])]
    return out


class NoticesPage(ListPage):
    view = "notices"
    heading = "Notices that stand"
    empty = "nothing stands"

    def notices(self) -> list[Notice]:
        return standing(host(self).store.notices)

    def rows(self) -> Sequence[Row]:
        ink, out = host(self).ink, []
        for notice in self.notices():
            sign, pen = SIGNS.get(notice.level, ("·", "muted"))
            out.append(
                Row(
                    [
                        (f"{sign} ", ink(pen, "b")),
                        (f"{clock(notice.ts_ms):<6}", ink("faint")),
                        (line(notice.title), ink("text")),
                    ]
                )
            )
        return out

    def detail(self, width: int) -> list[Strip]:
        return notice_lines(self.notices()[self.index], width, host(self).ink)

    async def action_open(self) -> None:
        found = self.notices()
        if found and found[self.index].code == INTERRUPTED:
            await self.app.run_action("app.interrupted")
        else:
            host(self).refuse("this is all of it" if found else "nothing stands")
