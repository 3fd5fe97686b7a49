from __future__ import annotations

import asyncio
import errno
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from claw_engine.config.mounts import eventless_kind
from claw_engine.config.reload import (
    ConfigFileChanged,
    FileWatcher,
    WatchEvent,
    WatchReport,
    WorkspaceFilesChanged,
)
from claw_engine.config.snapshot import WatchTargets
from claw_engine.config.wakers import EventWaker, Waker

LIMIT_S = 30


class Watched:
    """A running watcher whose events arrive in a queue."""

    def __init__(self, watcher: FileWatcher) -> None:
        self.watcher = watcher
        self.stop = asyncio.Event()
        self.events: asyncio.Queue[WatchEvent] = asyncio.Queue()

    async def run(self) -> None:
        async for event in self.watcher.changes(self.stop):
            self.events.put_nowait(event)

    async def next(self, kind: type[WatchEvent]) -> WatchEvent:
        async with asyncio.timeout(LIMIT_S):
            while True:
                event = await self.events.get()
                if isinstance(event, kind):
                    return event

    async def until_seen(self, path: Path) -> None:
        """Wait for a workspace event that names `path`."""
        while True:
            event = await self.next(WorkspaceFilesChanged)
            assert isinstance(event, WorkspaceFilesChanged)
            if path in event.paths:
                return


@asynccontextmanager
async def watched(watcher: FileWatcher) -> AsyncIterator[Watched]:
    run = Watched(watcher)
    task = asyncio.create_task(run.run())
    try:
        async with asyncio.timeout(LIMIT_S):
            await watcher.ready.wait()
        yield run
    finally:
        run.stop.set()
        async with asyncio.timeout(5):
            await task


class Place:
    def __init__(self, root: Path) -> None:
        self.config = root / "state" / "openclaw.json"
        self.workspace = root / "state" / "workspace"
        self.config.parent.mkdir()
        self.targets = WatchTargets((self.config,), (self.workspace,))

    def watcher(self, *, table: str = "", poll_seconds: float = 0.05) -> FileWatcher:
        return FileWatcher(
            lambda: self.targets, debounce_ms=20, poll_seconds=poll_seconds, table=lambda: table
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def replaced(path: Path, text: str) -> None:
    """As editors save: a new file renamed over the old one."""
    temporary = path.with_name("saving.tmp")
    temporary.write_text(text)
    temporary.replace(path)


async def written(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.mark.parametrize("save", [replaced, written])
@pytest.mark.parametrize("table", ["", "1 1 0:1 / / rw - nfs4 host:/x rw"])
async def test_config_changes_are_told_with_events_and_with_polling(
    place: Place, save: Callable[[Path, str], Awaitable[None]], table: str
) -> None:
    async with watched(place.watcher(table=table)) as run:
        for text in ("{}", "{gateway: {}}"):
            await save(place.config, text)
            assert await run.next(ConfigFileChanged) == ConfigFileChanged((place.config,))
        place.config.unlink()
        assert await run.next(ConfigFileChanged) == ConfigFileChanged((place.config,))


async def test_polling_is_reported_once_with_its_reason(place: Place) -> None:
    async with watched(place.watcher(table="1 1 0:1 / / rw - cifs //nas/x rw")) as run:
        report = await run.next(WatchReport)
        assert isinstance(report, WatchReport)
        assert report.code == "watch-polling" and "cifs" in report.text
        assert report.path == place.config.parent, "what is followed, not a folder above it"
        place.workspace.mkdir()
        (place.workspace / "A.md").write_text("x")
        await run.until_seen(place.workspace / "A.md")
        assert run.events.empty()


async def test_only_markdown_of_the_workspace_counts(place: Place) -> None:
    place.workspace.mkdir()
    async with watched(place.watcher()) as run:
        (place.workspace / "notes.txt").write_text("x")
        (place.workspace / "SOUL.md").write_text("x")
        event = await run.next(WorkspaceFilesChanged)
        assert event == WorkspaceFilesChanged((place.workspace / "SOUL.md",))


async def test_a_workspace_made_later_is_followed(place: Place) -> None:
    async with watched(place.watcher()) as run:
        place.workspace.mkdir()
        (place.workspace / "AGENTS.md").write_text("one")
        await run.until_seen(place.workspace / "AGENTS.md")
        (place.workspace / "AGENTS.md").write_text("two, longer")
        await run.until_seen(place.workspace / "AGENTS.md")


async def test_in03_a_folder_deleted_and_made_again_fifty_times(place: Place) -> None:
    """IN-03: fifty times, then renamed."""
    place.workspace.mkdir()
    async with watched(place.watcher()) as run:
        for round_number in range(50):
            shutil.rmtree(place.workspace)
            place.workspace.mkdir()
            (place.workspace / "AGENTS.md").write_text(str(round_number))
            await asyncio.to_thread(lambda: None)
        await run.until_seen(place.workspace / "AGENTS.md")
        last = place.workspace / "LAST.md"
        last.write_text("x")
        await run.until_seen(last)
        place.workspace.rename(place.workspace.with_name("moved"))
        await run.until_seen(last)


async def test_in03_a_circle_of_links_is_reported_once_and_survived(place: Place) -> None:
    """IN-03: a circle of links."""
    place.workspace.mkdir()
    (place.workspace / "AGENTS.md").write_text("x")
    other = place.workspace.with_name("other")
    async with watched(place.watcher()) as run:
        shutil.rmtree(place.workspace)
        place.workspace.symlink_to(other)
        other.symlink_to(place.workspace)
        report = await run.next(WatchReport)
        assert isinstance(report, WatchReport)
        assert (report.code, report.path) == ("watch-symlink-loop", place.workspace)
        place.config.write_text("{}")
        await run.next(ConfigFileChanged)
        assert run.events.empty(), "the circle is told once"
        place.workspace.unlink()
        place.workspace.mkdir()
        (place.workspace / "AGENTS.md").write_text("back")
        await run.until_seen(place.workspace / "AGENTS.md")


async def test_new_targets_are_followed_without_a_restart(place: Place) -> None:
    second = place.workspace.with_name("second")
    second.mkdir()
    async with watched(place.watcher()) as run:
        place.targets = WatchTargets((place.config,), (second,))
        place.config.write_text("{}")
        await run.next(ConfigFileChanged)
        (second / "B.md").write_text("x")
        await run.until_seen(second / "B.md")


async def test_a_missing_state_folder_is_waited_for(tmp_path: Path) -> None:
    config = tmp_path / "not" / "yet" / "openclaw.json"
    watcher = FileWatcher(lambda: WatchTargets((config,)), debounce_ms=20, table=lambda: "")
    async with watched(watcher) as run:
        config.parent.mkdir(parents=True)
        config.write_text("{}")
        assert await run.next(ConfigFileChanged) == ConfigFileChanged((config,))


async def test_without_event_watches_it_polls_and_says_why(place: Place) -> None:
    def refuse(folders: tuple[Path, ...]) -> Waker:
        raise OSError(errno.ENOSPC, "watch limit reached")

    watcher = FileWatcher(
        lambda: place.targets, debounce_ms=20, poll_seconds=0.05, table=lambda: "", arm=refuse
    )
    async with watched(watcher) as run:
        report = await run.next(WatchReport)
        assert isinstance(report, WatchReport) and "watch limit reached" in report.text
        place.config.write_text("{}")
        assert await run.next(ConfigFileChanged) == ConfigFileChanged((place.config,))


async def test_a_waker_is_worn_out_once_its_folder_was_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    waker = EventWaker.arm((tmp_path, folder))
    try:
        (folder / "A.md").write_text("x")
        assert await waker.wait(asyncio.Event())
        shutil.rmtree(folder)
        folder.mkdir()
        assert not await waker.wait(asyncio.Event())
    finally:
        waker.close()


async def test_stop_ends_a_wait_at_once(tmp_path: Path) -> None:
    stop = asyncio.Event()
    waker = EventWaker.arm((tmp_path,))
    waiting = asyncio.create_task(waker.wait(stop))
    await asyncio.sleep(0)
    stop.set()
    assert await asyncio.wait_for(waiting, 2)
    waker.close()


MOUNTS = r"""22 1 8:1 / / rw - ext4 /dev/sda1 rw
40 22 0:40 / /mnt/my\040nas rw - cifs //nas/x rw
41 40 0:41 / /mnt/my\040nas/local rw - ext4 /dev/sdb1 rw
42 22 0:42 / /home/ada/drive rw - fuse.rclone r: rw
43 22 0:43 / /over rw - nfs4 h:/x rw
44 22 0:44 / /over rw - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada", None),
        ("/home/ada/drive/x", "fuse.rclone"),
        ("/home/ada/drives", None),
        ("/mnt/my nas/state", "cifs"),
        ("/mnt/my nas/local/state", None),
        ("/over/x", None),
    ],
)
def test_file_systems_without_events(path: str, kind: str | None) -> None:
    assert eventless_kind(Path(path), MOUNTS) == kind


def test_no_mount_table_means_events() -> None:
    assert eventless_kind(Path("/x"), "") is None
