"""What the log view holds of the log and how it gets it: the end, older and newer pages, what comes
while it follows. Asks the engine; paints nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from textual.timer import Timer

from claw_engine.errors import ClawError
from claw_tui.screens.listpage import ListPage
from claw_tui.screens.page import run_alone
from claw_tui.store.logs import LogWindow, Piece, Sieve, page_from, tail_from
from claw_tui.store.sanitize import line
from claw_tui.store.wire import Json
from claw_tui.widgets.host import host

FIRST, PAGE, SCAN = 120, 250, 500
"""Lines asked for at a time: to open the view, to go on, to look for what a filter keeps."""
BURST = 1000
"""Lines taken at once while following; of more, the last ones."""
SCAN_PAGES = 40
"""Pages that one key looks through for what a filter keeps."""
FOLLOW_SECONDS = 1.0
COUNT_SECONDS = 3.0
"""Between looks at what is new while something older is read."""
NEAR = 60
"""Records from an end of the window at which the next page is read."""

Ask = Callable[[str, Mapping[str, object]], Awaitable[Json]]
"""Asks the engine. Raises ClawError."""

Work = Callable[[], Awaitable[None]]


class LogReader(ListPage):
    """Subclasses show (`show`) and have the keys; `index` is the cursor."""

    def __init__(self, ask: Ask, *, paged: bool) -> None:
        super().__init__()
        self._ask = ask
        self._paged = paged
        """Whether the gateway tells what stands before the end of its log."""
        self.window = LogWindow()
        self.following = True
        self.new = 0
        """Records that came below while something older is read."""
        self.problem = ""
        self.loaded = False
        self._heard = ("", 0)
        """Where the log ended when it was looked at last."""
        self._reading = False
        self._wanted: Work | None = None
        self._timer: Timer | None = None

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def afresh(self, sieve: Sieve | None = None) -> None:
        """The end of the log, through the sieve."""
        self.window = LogWindow(self.window.sieve if sieve is None else sieve)
        self.following, self.new, self.index = True, 0, 0
        self._wanted = None  # whatever is being read is given up for this
        self._read(self._open)

    def read_older(self) -> None:
        """Now, or as soon as what is being read is there."""
        if self.older_there:
            self._read_next(self._older)

    def read_newer(self) -> None:
        if self._paged and not self.window.at_end:
            self._read_next(self._newer)

    def _read_next(self, work: Work) -> None:
        if self._reading:
            self._wanted = work
        else:
            self._read(work)

    @property
    def older_there(self) -> bool:
        """Whether something older can be asked for."""
        return self._paged and not self.window.began and self.window.top is not None

    @property
    def reading(self) -> bool:
        return self._reading

    def _read(self, work: Work) -> None:
        self._reading = True
        run_alone(self, "log", partial(self._done, work))

    async def _done(self, work: Work) -> None:
        before = self.shown()
        todo: Work | None = work
        while todo is not None:
            try:
                await todo()
                self.problem = ""
            except ClawError as error:
                self.problem = line(error.title)
                self._wanted = None
            todo, self._wanted = self._wanted, None
        self._reading, self.loaded = False, True
        if self.is_attached:
            self._look_later()
            if self.shown() != before:  # a quiet log costs the terminal nothing
                self.show()

    def shown(self) -> tuple[object, ...]:
        """What differs when there is something to paint."""
        window = self.window
        return (self.loaded, self.problem, self.new, self.index, self.following, window.began,
                window.at_end, window.scanned, id(window))  # fmt: skip

    async def _open(self) -> None:
        limit = FIRST if self._paged else SCAN  # the only look that is to be had
        piece = tail_from(await self._ask("logs.tail", {"limit": limit}))
        self._heard = (piece.file, piece.end)
        self.window.newer(piece)
        self.index = len(self.window.records) - 1
        await self._fill()

    @property
    def _lines(self) -> int:
        return SCAN if self.window.sieve.words else PAGE

    async def _fill(self) -> None:
        """With a filter, look further back until a screen is full."""
        wanted = max(1, self.size.height)
        for _ in range(SCAN_PAGES):
            if len(self.window.records) >= wanted or not self.older_there:
                return
            await self._one_older()
            self.show()

    async def _older(self) -> None:
        had = len(self.window.records)
        for _ in range(SCAN_PAGES):
            await self._one_older()
            if len(self.window.records) != had or not self.older_there:
                return
            self.show()

    async def _one_older(self) -> None:
        top = self.window.top
        if top is None:
            return
        params = {"file": top[0], "end": top[1], "limit": self._lines}
        self.index += self.window.older(page_from(await self._ask("logs.page", params)))
        self.index = max(0, min(self.index, len(self.window.records) - 1))

    async def _newer(self) -> None:
        """What stands below the window, until something was found."""
        for _ in range(SCAN_PAGES):
            file, end = self.window.bottom
            params = {"file": file, "start": end, "limit": self._lines}
            piece = page_from(await self._ask("logs.page", params))
            piece.newest |= not piece.lines and piece.file == file
            came, gone = self.window.newer(piece)
            self.index = max(0, self.index - gone)
            if self.window.at_end:
                self._heard = self.window.bottom
            if came or self.window.at_end:
                return

    # ── following ───────────────────────────────────────────────────────────────────────────

    def _look_later(self) -> None:
        """One look ahead at a time; with the page it ends."""
        if self._timer is not None:
            self._timer.stop()
        wait = FOLLOW_SECONDS if self.following else COUNT_SECONDS
        self._timer = self.set_timer(wait, self.look)

    def look(self) -> None:
        """See what is new, unless something is read already: that looks later by itself."""
        if not self._reading:
            self._read(self._look)

    async def _look(self) -> None:
        file, end = self._heard
        piece = tail_from(await self._ask("logs.tail", {"cursor": end, "limit": BURST}))
        whole = self.following or self.window.at_end
        if piece.file != file and file and self._paged and whole:
            await self._next_day()
            return
        if piece.file != file and file:
            piece = tail_from(await self._ask("logs.tail", {"cursor": 0, "limit": BURST}))
        elif not piece.lines and not piece.reset:
            return
        self._heard = (piece.file, piece.end)
        if self.following:
            self._take(piece)
        elif piece.reset or not self.window.at_end:
            self.window.at_end = False
            self.new += self._count(piece)
        else:
            came, _ = self.window.newer(piece, hold=True)
            self.new += came if self.window.at_end else self._count(piece)

    def _take(self, piece: Piece) -> None:
        if piece.reset or not self.window.at_end:  # too much to read all of it
            self.window = LogWindow(self.window.sieve)
        self.window.newer(piece)
        self.index = len(self.window.records) - 1

    def _count(self, piece: Piece) -> int:
        return LogWindow(self.window.sieve).newer(piece)[0]

    async def _next_day(self) -> None:
        """Another file goes on: the rest of this one, then what that one has."""
        had, self.window.at_end = len(self.window.records), False
        for _ in range(SCAN_PAGES):
            await self._newer()
            if self.window.at_end:
                break
        if self.following:
            self.index = len(self.window.records) - 1
        else:
            self.new += max(0, len(self.window.records) - had)

    def follow(self, on: bool) -> None:
        """Keep to the end, or to what is read."""
        if on and not self.window.at_end:
            self.afresh()
            return
        self.following = on
        if on:
            self.new, self.index = 0, max(0, len(self.window.records) - 1)
            self.look()
        host(self).refuse("")
        self.show()
