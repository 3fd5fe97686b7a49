"""What view 2 knows of calls and how it gets it: the one that is shown, lists of them, two
compared. Asks the engine; paints nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from time import perf_counter

from claw_engine.errors import ClawError
from claw_tui.screens.page import Page, run_alone
from claw_tui.store.requests import (
    CallInfo,
    Comparison,
    Request,
    calls_from,
    comparison_from,
    request_from,
)
from claw_tui.store.wire import Json, flag, text
from claw_tui.widgets.comparepaint import Line, compare_lines
from claw_tui.widgets.host import host

CALLS_PAGE = 100
COMPARE_LINES = 800
"""Lines that differ which are asked for: about 30 screens."""
SLICE_SECONDS = 0.004

Ask = Callable[[str, Mapping[str, object]], Awaitable[Json]]
"""Asks the engine. Raises ClawError."""

Work = Callable[..., Awaitable[None]]


class PromptCalls(Page):
    """Subclasses show all of it (`show`) and have the keys."""

    def __init__(self, ask: Ask, call_id: str = "") -> None:
        super().__init__()
        self._ask = ask
        self.session = ""
        self.request: Request | None = None
        self.loaded = False
        self.problem: tuple[str, str] | None = None
        self.recording = True
        self.stopped = ""
        """Why nothing is recorded although it should be."""
        self._looked = False
        """Whether it is known that calls are recorded."""
        self.over = bool(call_id)
        """Whether it was opened over another page, for one call of it."""
        self.following = not call_id
        self.note = ""
        self.section = "parts"
        self._trail: list[str] = []
        self._cursors: dict[str, int] = {}
        self.calls: list[CallInfo] = []
        self.calls_next: int | None = None
        self.of_run = True
        self._newer: dict[str, str] = {}
        """Of calls whose successor is known: its id."""
        self.comparison: Comparison | None = None
        self.lines: list[Line] = []
        self.built = True
        self.unfold = False
        self.redacted: set[str] = set()
        self._heard = -1
        self._first = call_id

    def show(self) -> None:
        raise NotImplementedError

    # ── sections ────────────────────────────────────────────────────────────────────────────

    @property
    def list_section(self) -> str:
        """The section whose list is on the screen: with a part open, the one it came from."""
        return self._trail[-1] if self.section == "text" and self._trail else self.section

    @property
    def cursor(self) -> int:
        return self._cursors.get(self.list_section, 0)

    @cursor.setter
    def cursor(self, place: int) -> None:
        self._cursors[self.list_section] = place

    def enter(self, section: str, cursor: int = 0) -> None:
        if section != self.section:
            self._trail.append(self.section)
            self.section = section
        if section != "text":
            self._cursors[section] = cursor
        self.show()

    def leave(self) -> bool:
        """Back to where this section was opened from; False from the list of parts."""
        if not self._trail:
            return False
        self.section = self._trail.pop()
        self.follow_up()
        self.show()
        return True

    def _work(self, group: str, work: Work, *args: object) -> None:
        """One at a time in each group: the newest wish counts. What is refused is said."""

        async def said() -> None:
            try:
                await work(*args)
            except ClawError as error:
                host(self).store.notice("error", error.title, hint=error.hint)
                self.show()

        run_alone(self, group, said)

    # ── the call that is shown ──────────────────────────────────────────────────────────────

    def follow_up(self) -> None:
        """Take the newest call if one was heard of, unless something is being read."""
        store = host(self).store
        if store.selected != self.session:
            self.session, self._heard = store.selected, -1
            self.following = not self._first
        if not self.following and self.loaded:
            return
        heard = store.calls_heard.get(store.selected, 0)
        if heard != self._heard and self.section == "parts" and store.link.value == "connected":
            self._heard = heard
            call_id, self._first = self._first, ""
            self._work("call", self._load, call_id)

    async def _load(self, call_id: str) -> None:
        params = {"callId": call_id} if call_id else {"sessionKey": self.session}
        try:
            request = request_from(await self._ask("trace.call", params))
        except ClawError as error:
            await self._nothing(error, call_id)
            return
        self._take(request)
        if not call_id and not self._looked:
            await self._look_whether_recording()

    def _take(self, request: Request) -> None:
        was = self.request
        if was is None or was.call.id != request.call.id:
            self.redacted.clear()
            self.note = ""
            culprit = request.culprit
            self._cursors["parts"] = culprit if culprit is not None else 0
        if request.previous is not None:
            self._newer[request.previous.id] = request.call.id
        self.request, self.loaded, self.problem = request, True, None
        self.show()

    async def _nothing(self, error: ClawError, call_id: str) -> None:
        if call_id:
            raise error
        self.request = None
        await self._look_whether_recording()
        unknown = getattr(getattr(error, "shape", None), "code", "") == "INVALID_REQUEST"
        self.problem = None if unknown or not self.recording else (error.title, error.hint)
        self.loaded = True
        self.show()

    async def _look_whether_recording(self) -> None:
        listed = await self._ask("trace.list", {"sessionKey": self.session, "limit": 1})
        self.recording = self._looked = flag(listed, "enabled", True)
        why = text(listed, "why")
        self.stopped = "" if "claw.trace.enabled" in why else why
        if not self.recording and self.request is not None:
            why = f"stopped: {self.stopped}" if self.stopped else "is off (claw.trace.enabled)"
            self.note = f"recording {why}; this is the last that was recorded"
            self.show()

    def newest(self) -> None:
        """Show the newest call, and those that come after it."""
        self.following, self._heard = True, -1
        self._trail.clear()
        self.section = "parts"
        self.follow_up()

    def go_to(self, call_id: str) -> None:
        self.following = False
        self._trail.clear()
        self.section = "parts"
        self._work("call", self._load, call_id)

    def neighbour(self, step: int) -> None:
        request = self.request
        if request is None:
            host(self).refuse("there is no call to go on from")
        elif step < 0 and request.previous is None:
            host(self).refuse("this is the first recorded call of the session")
        elif step < 0 and request.previous is not None:
            self.go_to(request.previous.id)
        else:
            self._work("call", self._next, request.call)

    async def _next(self, call: CallInfo) -> None:
        if call.id not in self._newer:
            params = {"sessionKey": call.session or self.session, "limit": 1000}
            self._learn(calls_from(await self._ask("trace.calls", params))[0])
        newer = self._newer.get(call.id)
        if newer is None:
            self.following = True
            host(self).refuse("this is the newest call; what comes is shown")
            self.show()
        else:
            self.following = False
            await self._load(newer)

    def _learn(self, calls: list[CallInfo]) -> None:
        """`calls` of one session, the newest first."""
        for newer, older in pairwise(calls):
            self._newer[older.id] = newer.id

    # ── lists of calls ──────────────────────────────────────────────────────────────────────

    def list_calls(self, *, of_run: bool, pick: bool = False) -> None:
        self.of_run = of_run
        self.calls, self.calls_next = [], None
        if pick or self.section != "calls":
            self.enter("pick" if pick else "calls")
        self._work("calls", self._calls, None)

    def more_calls(self) -> None:
        if self.calls_next is not None:
            before, self.calls_next = self.calls_next, None
            self._work("calls", self._calls, before)

    async def _calls(self, before: int | None) -> None:
        request = self.request
        params: dict[str, object] = {"limit": CALLS_PAGE}
        if self.of_run and request is not None:
            params["runId"] = request.call.run_id
        else:
            params["sessionKey"] = self.session
        if before is not None:
            params["before"] = before
        calls, self.calls_next = calls_from(await self._ask("trace.calls", params))
        first = before is None
        self.calls = calls if first else [*self.calls, *calls]
        if not self.of_run:
            self._learn(self.calls)
        if first and request is not None:
            ids = [call.id for call in self.calls]
            here = ids.index(request.call.id) if request.call.id in ids else 0
            # To compare, the call before this one is the likeliest wish.
            here += self.section == "pick"
            self._cursors[self.section] = here
        self.show()

    # ── comparing ───────────────────────────────────────────────────────────────────────────

    def compare_with(self, other: CallInfo) -> None:
        request = self.request
        if request is None or other.id == request.call.id:
            host(self).refuse("that is this call itself: choose another")
            return
        a, b = sorted((other, request.call), key=lambda call: (call.started_ms, call.number))
        self._work("compare", self._compare, a.id, b.id)

    async def _compare(self, a: str, b: str) -> None:
        params = {"a": a, "b": b, "lines": COMPARE_LINES}
        self.comparison = comparison_from(await self._ask("trace.compare", params))
        self.unfold = False
        self.lines = []
        if self.section == "pick":
            self.leave()
        self.enter("compare")
        await self._build()

    def build_lines(self) -> None:
        self._work("compare", self._build)

    async def _build(self) -> None:
        """Wrap the lines in slices, so that keys and the engine come in between."""
        if self.comparison is None:
            return
        lines: list[Line] = []
        self.built, stop = False, perf_counter() + SLICE_SECONDS
        for item in compare_lines(self.comparison, self.size.width - 3, unfold=self.unfold):
            lines.append(item)
            if perf_counter() > stop:
                await asyncio.sleep(0)
                stop = perf_counter() + SLICE_SECONDS
        self.lines, self.built = lines, True
        self.show()
