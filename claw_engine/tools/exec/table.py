"""All commands in the background: who may see them, how long, and that none is forgotten.

Written down in the state directory while they run, so that the next engine finds what a crash
left. Knows no run and no gateway; news of an end goes to whoever listens to the bus.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from claw_engine.events import Event, Notice
from claw_engine.runs import AbortReason
from claw_engine.tools.exec.background import Background, OnEnd
from claw_engine.tools.exec.job import Ran
from claw_engine.tools.exec.orphans import Reaped, reap
from claw_engine.tools.exec.results import exit_fields
from claw_engine.tools.exec.roster import Listed, Roster
from claw_engine.tools.exec.running import Running
from claw_engine.tools.exec.slugs import slug
from claw_engine.world import Timer, World

log = logging.getLogger("claw.tools")

CLEANUP_MS = 30 * 60_000
CLEANUP_RANGE_MS = (60_000, 3 * 3_600_000)
"""How long an ended command is remembered: default and bounds (agent digest §5.4)."""

KEPT_ENDED = 100
"""Ended commands remembered at most; each may hold 200,000 characters."""

_NOTICE_CHARS = 180


class Keep(Struct, frozen=True):
    """By configuration: ms an ended command stays, and whether its end is told."""

    cleanup_ms: int = CLEANUP_MS
    notify: bool = True
    notify_empty_success: bool = False


class ProcessTable:
    """Loop thread only. Use: `await reap(…)` at start, `await close()` at the end."""

    def __init__(self, world: World, publish: Callable[[Event], None], path: Path) -> None:
        self._world = world
        self._publish = publish
        self._entries: dict[str, Background] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._sweeps: dict[str, Timer] = {}
        self._roster = Roster(world, path, self._listed)

    # -- start and end of the engine -----------------------------------------------------------

    async def reap(self, interrupted: Collection[str] = ()) -> Reaped:
        """Stop what a dead engine left running; `interrupted` are the runs it did not finish."""
        left = await self._roster.load()
        if not left and not interrupted:
            await self._roster.keep()
            return Reaped()
        reaped = await reap(left, frozenset(interrupted), self._world.clock)
        self._tell_reaped(reaped)
        await self._roster.keep()
        return reaped

    async def close(self) -> None:
        """Stop all commands and write down that none is left."""
        await self.kill_all(AbortReason.SHUTDOWN.value)
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)
        for timer in self._sweeps.values():
            timer.cancel()
        self._sweeps.clear()
        await self._roster.keep()

    # -- for exec ------------------------------------------------------------------------------

    def adopt(
        self,
        running: Running,
        *,
        session_key: str,
        command: str,
        keep: Keep,
        on_end: OnEnd | None = None,
    ) -> Background:
        """Take a running command over; `written` then makes it durable."""
        name = slug(int(self._world.ids.hex(8), 16), self._entries)
        running.follow(None)
        entry = Background(name, session_key, command, running.job.cwd, running, on_end)
        self._entries[name] = entry
        self._watchers[name] = asyncio.create_task(self._watch(entry, keep), name=f"end:{name}")
        log.info("command in background: session=%s pid=%d", name, running.pid)
        return entry

    async def written(self) -> None:
        """Return when the list on disk is the present one (or the disk has refused)."""
        await self._roster.keep()

    # -- for whoever looks ---------------------------------------------------------------------

    def of_session(self, session_key: str) -> list[Background]:
        """Its commands, oldest first, ended ones too."""
        return [entry for entry in self._entries.values() if entry.session_key == session_key]

    def get(self, session_key: str, session_id: str) -> Background | None:
        entry = self._entries.get(session_id)
        return entry if entry is not None and entry.session_key == session_key else None

    @property
    def running(self) -> int:
        """How many still run."""
        return sum(1 for _ in self._alive(None))

    async def kill(self, entry: Background, reason: str) -> None:
        """Stop it with all its processes and wait for its end."""
        if not entry.ended and not entry.stopped_by:
            entry.stopped_by = reason
            log.info("command stop: session=%s reason=%s", entry.id, reason)
        entry.running.stop()
        watcher = self._watchers.get(entry.id)
        if watcher is not None:
            await asyncio.shield(watcher)

    async def kill_all(self, reason: str, session_key: str | None = None) -> list[str]:
        """Stop every command (of one session); their names."""
        entries = list(self._alive(session_key))
        await asyncio.gather(*(self.kill(entry, reason) for entry in entries))
        return [entry.id for entry in entries]

    def drop(self, entry: Background) -> None:
        """Forget a command that has ended."""
        self._entries.pop(entry.id, None)
        timer = self._sweeps.pop(entry.id, None)
        if timer is not None:
            timer.cancel()

    # -- inside --------------------------------------------------------------------------------

    def _alive(self, session_key: str | None) -> Iterable[Background]:
        for entry in self._entries.values():
            if not entry.ended and session_key in (None, entry.session_key):
                yield entry

    def _listed(self) -> list[Listed]:
        return [entry.listed() for entry in self._alive(None)]

    async def _watch(self, entry: Background, keep: Keep) -> None:
        """See one command to its end."""
        ran = await entry.running.wait()
        log.info("command ended: session=%s status=%s code=%d", entry.id, entry.status,
                 ran.returncode)  # fmt: skip
        self._tell_end(entry, ran, keep)
        self._sweep_later(entry, keep)
        try:
            if entry.on_end is not None:
                await entry.on_end(ran)
        except Exception:
            log.exception("end of a command not recorded: session=%s", entry.id)
        await self._roster.keep()
        self._watchers.pop(entry.id, None)

    def _sweep_later(self, entry: Background, keep: Keep) -> None:
        if entry.id not in self._entries:
            return
        low, high = CLEANUP_RANGE_MS
        seconds = min(max(keep.cleanup_ms, low), high) / 1000
        self._sweeps[entry.id] = self._world.clock.call_later(seconds, lambda: self.drop(entry))
        ended = [other for other in self._entries.values() if other.ended]
        for surplus in sorted(ended, key=lambda e: e.ended_ms or 0)[:-KEPT_ENDED]:
            self.drop(surplus)

    def _tell_end(self, entry: Background, ran: Ran, keep: Keep) -> None:
        """A notice for the console. Nobody is told what they did themselves."""
        empty = not ran.output.strip() and not ran.left_out
        silent = ran.returncode == 0 and empty and not keep.notify_empty_success
        if not keep.notify or entry.stopped_by or silent:
            return
        failed = entry.status != "completed"
        ending = exit_fields(ran).get("exitSignal") or f"code {ran.returncode}"
        if ran.timed_out:
            ending = "time limit"
        text = " ".join(ran.output[-2 * _NOTICE_CHARS :].split())[-_NOTICE_CHARS:]
        self._say(
            f"command:{entry.id}",
            "warn" if failed else "info",
            f"Command {'failed' if failed else 'completed'} ({entry.id}, {ending}).",
            f"{entry.label}\n{text}".rstrip(),
        )

    def _tell_reaped(self, reaped: Reaped) -> None:
        """What was found of a dead engine, in the log and for the console."""
        for what, names in (
            ("stopped", reaped.stopped),
            ("survived", reaped.survived),
            ("unsure", reaped.unsure),
        ):
            if names:
                log.warning("orphans %s: %s", what, ", ".join(names))
        if reaped.stopped:
            self._say(
                "orphans-stopped", "warn",
                f"{_count(reaped.stopped)} of an engine that died: stopped.",
                ", ".join(reaped.stopped),
            )  # fmt: skip
        if reaped.survived:
            self._say(
                "orphans-survived", "error",
                f"{_count(reaped.survived)} of an engine that died cannot be stopped.",
                ", ".join(reaped.survived),
            )  # fmt: skip
        if reaped.unsure:
            self._say(
                "orphans-unsure", "info",
                f"{_count(reaped.unsure)} may come from earlier runs; left alone.",
                ", ".join(reaped.unsure),
                "Nothing proves that they belong to what was cut off. Stop them yourself if so.",
            )  # fmt: skip

    def _say(self, code: str, level: str, title: str, text: str, hint: str = "") -> None:
        self._publish(Notice(code, level, title, hint, text, ts=self._world.clock.now_ms()))


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} process{'' if len(names) == 1 else 'es'}"
