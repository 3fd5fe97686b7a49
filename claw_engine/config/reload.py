"""Follows the configuration and the workspace's Markdown files and tells when they changed.

Folders may be missing, vanish, come back or turn into symlink circles: the watcher lives on.
It only reports; loading is the store's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from msgspec import Struct

from claw_engine.config.mounts import eventless_kind, mount_table
from claw_engine.config.snapshot import (
    Snapshot,
    WatchTargets,
    differing,
    folders_to_watch,
    take_snapshot,
)
from claw_engine.config.wakers import EventWaker, TimerWaker, Waker, pause

DEBOUNCE_MS = 300
POLL_SECONDS = 2.0
_SETTLE_ROUNDS = 10
_POLLING_CODE = "watch-polling"
_LOOP_CODE = "watch-symlink-loop"


class ConfigFileChanged(Struct, frozen=True):
    """A configuration file (or one it includes, or `.env`) appeared, changed or vanished."""

    paths: tuple[Path, ...]


class WorkspaceFilesChanged(Struct, frozen=True):
    """Markdown files of a workspace appeared, changed or vanished."""

    paths: tuple[Path, ...]


class WatchReport(Struct, frozen=True):
    """Something the operator should know about watching itself. Each is told once."""

    code: str
    path: Path | None
    text: str


WatchEvent = ConfigFileChanged | WorkspaceFilesChanged | WatchReport


class FileWatcher:
    """`targets` is asked again on every look, so a reload may change what is followed.

    `debounce_ms`: files must be still this long before they are reported. `poll_seconds`: how
    often to look where no events arrive. `table` gives the mount table's text, `arm` a waker on
    folders (may raise OSError: then it is polling).
    """

    def __init__(
        self,
        targets: Callable[[], WatchTargets],
        *,
        debounce_ms: int = DEBOUNCE_MS,
        poll_seconds: float = POLL_SECONDS,
        table: Callable[[], str] = mount_table,
        arm: Callable[[tuple[Path, ...]], Waker] = EventWaker.arm,
    ) -> None:
        self._targets = targets
        self._debounce = debounce_ms / 1000
        self._poll_seconds = poll_seconds
        self._table = table
        self._arm = arm
        self._told: set[tuple[str, Path | str]] = set()
        self._reports: list[WatchReport] = []
        self._armed: dict[Path, tuple[int, int]] | None = None
        self._waker: Waker = TimerWaker(0)
        self._ended = False
        self.ready = asyncio.Event()
        """Set once every later change will be noticed."""

    async def changes(self, stop: asyncio.Event) -> AsyncIterator[WatchEvent]:
        """Yield changes until `stop` is set. Close the iterator or set `stop` to end it."""
        seen = await asyncio.to_thread(take_snapshot, self._targets())
        try:
            while not stop.is_set():
                await self._arm_or_wait(stop)
                now = await self._settled(seen, stop)
                for event in self._compare(seen, now):
                    yield event
                seen = now
                self.ready.set()
        finally:
            self._ended = True
            self._waker.close()

    async def _arm_or_wait(self, stop: asyncio.Event) -> None:
        """Arm when the folders are not those armed (then look at once), else wait."""
        folders = await asyncio.to_thread(folders_to_watch, self._targets())
        if folders == self._armed:
            if await self._woken(stop):
                return
            folders = await asyncio.to_thread(folders_to_watch, self._targets())
        self._waker.close()
        self._armed = None
        if await asyncio.to_thread(self._rearm, tuple(folders)):
            self._armed = folders
        else:
            await pause(self._debounce, stop)

    async def _woken(self, stop: asyncio.Event) -> bool:
        """Wait; False when the waker is worn out or failed and must be made anew."""
        try:
            return await self._waker.wait(stop)
        except (OSError, RuntimeError):
            await pause(self._debounce, stop)
            return False

    def _rearm(self, folders: tuple[Path, ...]) -> bool:
        """False when there was nothing to arm. In a thread, which nothing can cancel: a waker
        that comes too late closes itself."""
        waker = self._make_waker(folders)
        if waker is None:
            return False
        self._waker = waker
        if self._ended:
            waker.close()
        return True

    def _make_waker(self, folders: tuple[Path, ...]) -> Waker | None:
        """None when a folder vanished meanwhile: the next look arms again."""
        table = self._table()
        for folder in folders:
            kind = eventless_kind(folder.resolve(), table)
            if kind is not None:
                return self._poll(folder, f"{kind} reports no changes")
        try:
            return self._arm(folders)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError, ValueError) as error:
            return self._poll(None, f"change events are not available ({error})")

    def _poll(self, folder: Path | None, why: str) -> Waker:
        every = f"{self._poll_seconds:g} s"
        text = f"{folder or 'Files'}: {why}; looking every {every} instead."
        # By reason: another folder for the same reason changes nothing, all are polled already.
        self._report(WatchReport(_POLLING_CODE, folder, text), why)
        return TimerWaker(self._poll_seconds)

    def _report(self, report: WatchReport, about: Path | str) -> None:
        if (report.code, about) not in self._told:
            self._told.add((report.code, about))
            self._reports.append(report)

    async def _settled(self, seen: Snapshot, stop: asyncio.Event) -> Snapshot:
        """A snapshot that stayed the same for the debounce time (bounded: a busy file is told)."""
        now = await asyncio.to_thread(take_snapshot, self._targets())
        for _ in range(_SETTLE_ROUNDS):
            if now == seen or stop.is_set():
                break
            await pause(self._debounce, stop)
            again = await asyncio.to_thread(take_snapshot, self._targets())
            if again == now:
                break
            now = again
        return now

    def _compare(self, seen: Snapshot, now: Snapshot) -> Iterator[WatchEvent]:
        config = differing(seen.config, now.config)
        if config:
            yield ConfigFileChanged(config)
        workspace = differing(seen.workspace, now.workspace)
        if workspace:
            yield WorkspaceFilesChanged(workspace)
        self._tell_loops(now.loops)
        while self._reports:
            yield self._reports.pop(0)

    def _tell_loops(self, loops: frozenset[Path]) -> None:
        self._told -= {
            told for told in self._told if told[0] == _LOOP_CODE and told[1] not in loops
        }
        for path in sorted(loops):
            text = f"{path} is a circle of symbolic links; it is not read."
            self._report(WatchReport(_LOOP_CODE, path, text), path)
