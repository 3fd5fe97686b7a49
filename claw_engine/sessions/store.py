"""The sessions of a state directory: index and transcripts behind one door.

One transcript object per session, however many ask; after a restart everything is where it was.
Knows no run: who owns runs adds their state to the rows.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias
from weakref import WeakValueDictionary

from claw_engine.events import Event, Notice
from claw_engine.messages import Message
from claw_engine.paths import StateDir, contains
from claw_engine.sessions.entries import StoredMessage, read_entry
from claw_engine.sessions.entry import SessionEntry, named_path, transcript_path
from claw_engine.sessions.events import SessionsChanged
from claw_engine.sessions.index import SessionIndex
from claw_engine.sessions.keys import MAIN, SessionKey
from claw_engine.sessions.rows import SessionRow, matches, preview_of, row
from claw_engine.sessions.transcript import Transcript
from claw_engine.storage.errors import StateDiskError
from claw_engine.storage.jsonl import parse_line, tail
from claw_engine.world import World

log = logging.getLogger(__name__)

KEPT_OPEN = 32
"""Transcripts kept in memory although nobody holds them."""
PREVIEW_BATCH = 32
"""Ends of files read in one disk call."""
PREVIEW_LINES = 12
"""Lines read from the end of a transcript to find something to show."""


Texts: TypeAlias = list[str]  # inside the class `list` is the method


class Sessions:
    """Loop thread only; `open` first, `close` last."""

    def __init__(
        self,
        world: World,
        state_dir: StateDir,
        publish: Callable[[Event], None],
        *,
        default_agent: str = MAIN,
        workspace: Callable[[str], Path] | None = None,
        durability: str = "power",
    ) -> None:
        self._world = world
        self._state_dir = state_dir
        self._publish = publish
        self._workspace = workspace or state_dir.workspace
        self._durability = durability
        self._opening: dict[Path, asyncio.Task[Transcript]] = {}
        self._live: WeakValueDictionary[Path, Transcript] = WeakValueDictionary()
        self._recent: OrderedDict[Path, Transcript] = OrderedDict()
        self._previews: dict[Path, tuple[tuple[int, int], str]] = {}
        self.index = SessionIndex(world, state_dir, publish, default_agent)

    async def open(self) -> None:
        """Read the index of every agent. Raises StateDiskError."""
        await self.index.load_all()

    def key(self, key: str | SessionKey) -> SessionKey:
        """The canonical key. Raises InvalidSessionKey."""
        return self.index.key(key)

    def get(self, key: str | SessionKey) -> SessionEntry | None:
        """The entry of a session, or None."""
        return self.index.get(key)

    async def update(
        self, key: str | SessionKey, fn: Callable[[SessionEntry], SessionEntry]
    ) -> SessionEntry:
        """Change an entry; see SessionIndex.update."""
        return await self.index.update(key, fn)

    async def transcript(self, key: str | SessionKey) -> Transcript:
        """The session's transcript, opened; the session is made when there is none.

        Raises StateDiskError, ForeignTranscript, InvalidSessionKey.
        """
        entry = await self.index.ensure(key)
        path = self._path(entry)
        live = self._live.get(path)
        if live is not None:
            self._touch(path, live)
            return live
        task = self._opening.get(path)
        if task is None:
            task = asyncio.create_task(self._open(entry, path), name=f"open:{entry.key}")
            self._opening[path] = task
            task.add_done_callback(lambda _: self._opening.pop(path, None))
        return await asyncio.shield(task)

    async def history(self, key: str | SessionKey, limit: int = 200) -> tuple[StoredMessage, ...]:
        """The newest `limit` messages of a session, oldest first; empty for an unknown one."""
        entry = self.get(key)
        if entry is None or not entry.session_id or limit <= 0:
            return ()
        transcript = await self.transcript(key)
        return transcript.history()[-limit:]

    async def list(self, limit: int | None = None, search: str = "") -> tuple[SessionRow, ...]:
        """Rows, newest first; runs of cron jobs are hidden. Reads memory and ends of files."""
        wanted = [
            entry
            for entry in self.index.list()
            if not self.key(entry.key).is_cron_run and (not search or matches(entry, search))
        ][:limit]
        previews: Texts = []
        for start in range(0, len(wanted), PREVIEW_BATCH):
            previews += await self._previews_of(wanted[start : start + PREVIEW_BATCH])
        return tuple(map(row, wanted, previews))

    async def close(self) -> None:
        """Write what is left; never raises."""
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for transcript in tuple(self._live.values()):
            await transcript.close()
        await self.index.close()

    def _path(self, entry: SessionEntry) -> Path:
        return transcript_path(self._folder(entry), entry)

    def _folder(self, entry: SessionEntry) -> Path:
        return self._state_dir.sessions_dir(self.key(entry.key).agent_id)

    async def _open(self, entry: SessionEntry, path: Path) -> Transcript:
        transcript = Transcript(
            self._world,
            path,
            entry.session_id,
            str(self._workspace(self.key(entry.key).agent_id)),
            session_key=entry.key,
            durability=self._durability,
            before_first_write=self.index.flush,
        )
        await transcript.open()
        if transcript.repairs:
            self._tell_repairs(entry, transcript)
        self._live[path] = transcript
        self._touch(path, transcript)
        return transcript

    def _touch(self, path: Path, transcript: Transcript) -> None:
        self._recent[path] = transcript
        self._recent.move_to_end(path)
        if len(self._recent) <= KEPT_OPEN:
            return
        surplus = len(self._recent) - KEPT_OPEN
        settled = [path for path, transcript in self._recent.items() if transcript.settled]
        for old in settled[:surplus]:
            del self._recent[old]

    def _tell_repairs(self, entry: SessionEntry, transcript: Transcript) -> None:
        log.warning("transcript mended: key=%s %s", entry.key, " ".join(transcript.repairs))
        self._publish(
            Notice(
                code=f"transcript-repaired:{transcript.session_id}",
                level="warn",
                title=f"The transcript of {entry.key} was damaged and has been mended.",
                text=" ".join(transcript.repairs),
                ts=self._world.clock.now_ms(),
            )
        )
        self._publish(SessionsChanged(frozenset({entry.key})))

    async def _previews_of(self, entries: Sequence[SessionEntry]) -> Texts:
        folders = [self._folder(entry) for entry in entries]
        paths = [named_path(folder, entry) for folder, entry in zip(folders, entries, strict=True)]
        unread = {p: folder for p, folder in zip(paths, folders, strict=True) if p is not None}
        live = {path: talk for path in unread if (talk := self._live.get(path)) is not None}
        read = await self._world.disk.run(
            lambda: {p: self._read_preview(f, p) for p, f in unread.items() if p not in live}
        )
        read |= {
            path: preview_of(m.message for m in reversed(talk.history()))
            for path, talk in live.items()
        }
        return [read.get(path, "") if path is not None else "" for path in paths]

    def _read_preview(self, folder: Path, path: Path) -> str:
        try:
            stat = self._world.disk.stat(path)
            mark = (stat.st_size, stat.st_mtime_ns)
            known = self._previews.get(path)
            if known is not None and known[0] == mark:
                return known[1]
            if not contains(folder, path):  # a symlink out of the folder is never opened
                return ""
            lines = tail(self._world.disk, path, PREVIEW_LINES)
        except (OSError, StateDiskError):
            return ""
        text = preview_of(_messages(reversed(lines)))
        self._previews[path] = (mark, text)
        return text


def _messages(lines: Iterable[bytes]) -> Iterator[Message]:
    for line in lines:
        raw = parse_line(line)
        message = read_entry(raw, None).message if isinstance(raw, dict) else None
        if message is not None:
            yield message
