"""The sessions of a state directory: index and transcripts behind one door.

One transcript object per session, however many ask; after a restart everything is where it was.
Knows no run: who owns runs adds their state to the rows.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias
from weakref import WeakValueDictionary

from claw_engine.events import Event, Notice
from claw_engine.paths import StateDir
from claw_engine.sessions import lifecycle
from claw_engine.sessions.archive import Reason
from claw_engine.sessions.edits import ResolveModel, patched
from claw_engine.sessions.entries import StoredMessage
from claw_engine.sessions.entry import SessionEntry, named_path, transcript_path
from claw_engine.sessions.events import MessageStored, SessionsChanged
from claw_engine.sessions.hold import TranscriptHold
from claw_engine.sessions.index import SessionIndex
from claw_engine.sessions.keys import MAIN, SessionKey
from claw_engine.sessions.listing import Listing
from claw_engine.sessions.maintenance import Limits
from claw_engine.sessions.rows import SessionRow, matches
from claw_engine.sessions.transcript import Transcript
from claw_engine.sessions.upkeep import CleanupResult
from claw_engine.storage.foreign_lock import MAX_HOLD_S, FileLocks, sweep
from claw_engine.world import Timer, World

log = logging.getLogger(__name__)

KEPT_OPEN = 32
"""Transcripts kept in memory although nobody holds them."""
IDLE_S = 600.0
"""Seconds after which an unused transcript leaves memory."""
SEARCHED = 64
"""Entries looked through before other tasks get a turn."""

Entries: TypeAlias = list[SessionEntry]  # inside the class `list` is the method
Numbered: TypeAlias = tuple[int, tuple[StoredMessage, ...]]


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
        self._world = self.world = world
        self._state_dir = self.state_dir = state_dir
        self._publish = publish
        self._workspace = workspace or state_dir.workspace
        self._durability = durability
        self._opening: dict[Path, asyncio.Task[Transcript]] = {}
        self._live: WeakValueDictionary[Path, Transcript] = WeakValueDictionary()
        self._recent: OrderedDict[Path, tuple[Transcript, float]] = OrderedDict()
        self._idle_timer: Timer | None = None
        self._listing = Listing(world, self._folder, self._live)
        self.locks = FileLocks(world)
        self.index = SessionIndex(world, state_dir, publish, default_agent, self.locks)

    async def open(self) -> None:
        """Read the index of every agent; dead write locks go. Raises StateDiskError, LockHeld.

        The state directory's own lock must be held: locks of earlier engines are taken for dead.
        """
        disk, now = self._world.disk, self._world.clock.now_ms()
        await disk.run(sweep, self._state_dir.root, now)
        await self.index.load_all()

    def configure(self, default_agent: str, *, global_scope: bool = False) -> None:
        """Which agent bare keys belong to, and whether all main sessions are one."""
        self.index.configure(default_agent, global_scope=global_scope)

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
        # Links were looked at when it was opened, and each look asks every folder above.
        named = named_path(self._folder(entry), entry)
        live = self._live.get(named) if named is not None else None
        if named is not None and live is not None:
            self._touch(named, live)
            return live
        path = self.path(entry)
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
        return await transcript.recent(limit)

    async def numbered(self, key: str | SessionKey, limit: int) -> Numbered:
        """As `history`, with the number of the first of them (Transcript.first_number)."""
        found = await self.history(key, limit)
        if not found:
            return 1, ()
        talk = await self.transcript(key)
        return talk.first_number + max(0, len(talk.history()) - len(found)), found

    async def hold(
        self,
        key: str | SessionKey,
        *,
        timeout_s: float | None = None,
        max_hold_s: float = MAX_HOLD_S,
        on_lost: Callable[[], None] | None = None,
    ) -> TranscriptHold:
        """The session's transcript with OpenClaw's lock on it, for the length of a run.

        `max_hold_s` should be the run's timeout and two minutes more; `on_lost` is called when
        the lock was taken away after that. Raises LockHeld, and what `transcript` raises.
        """
        hold = await self.claim(key, max_hold_s=max_hold_s, on_lost=on_lost)
        await hold.acquire(timeout_s)
        return hold

    async def claim(
        self,
        key: str | SessionKey,
        *,
        max_hold_s: float = MAX_HOLD_S,
        on_lost: Callable[[], None] | None = None,
    ) -> TranscriptHold:
        """As `hold`, but the lock is not taken yet."""
        talk = await self.transcript(key)
        return TranscriptHold(self.locks, talk, max_hold_s=max_hold_s, on_lost=on_lost)

    # -- the life of a session -----------------------------------------------------------------

    async def reset(self, key: str | SessionKey, reason: Reason = "reset") -> SessionEntry:
        """Begin the session anew; the old transcript is archived, a few settings stay.

        Whoever still writes to the old transcript gets SessionEnded: stop its run first. Raises
        StateDiskError, LockHeld; the session is then as it was, or begun anew with the old
        transcript still under its old name.
        """
        return await lifecycle.reset(self, key, reason)

    async def delete(
        self, key: str | SessionKey, *, keep_transcript: bool = False
    ) -> tuple[Path, ...] | None:
        """Take a session away; where its transcript went, or None when there is no such session.

        Raises InvalidRequest for a main session, StateDiskError, LockHeld.
        """
        return await lifecycle.delete(self, key, keep_transcript=keep_transcript)

    async def cut(self, key: str | SessionKey, max_lines: int) -> tuple[int, Path] | None:
        """Keep the newest lines of a transcript; see lifecycle.cut. Stop its runs first."""
        return await lifecycle.cut(self, key, max_lines)

    async def patch(
        self,
        key: str | SessionKey,
        fields: Mapping[str, object],
        resolve_model: ResolveModel | None = None,
    ) -> SessionEntry:
        """Change settings by their names in the file; None clears one. Raises InvalidRequest."""
        wanted = self.key(key)
        others = self.index.of_agent(wanted.agent_id) if "label" in fields else ()
        return await self.update(
            wanted, lambda entry: patched(entry, wanted, fields, others, resolve_model)
        )

    async def fork(
        self, parent: str | SessionKey, key: str | SessionKey, max_tokens: int = 100_000
    ) -> SessionEntry:
        """Make a new session that begins with what its parent's model reads.

        A parent of more than `max_tokens` (0 = no limit), without an answer, or unknown is not
        copied: the session then begins empty. An existing session is left alone.
        """
        return await lifecycle.fork(self, parent, key, max_tokens)

    async def cleanup(
        self,
        limits: Limits,
        *,
        dry_run: bool,
        active: Iterable[str] = (),
        agent_id: str | None = None,
    ) -> tuple[CleanupResult, ...]:
        """Upkeep of one agent's folder or of all; with `limits.enforce` false nothing is done.

        `active` are keys that must stay (running, or shown to somebody).
        """
        agents = (agent_id,) if agent_id is not None else self.index.agents()
        keys = frozenset(str(self.key(key)) for key in active)
        done = not dry_run and limits.enforce
        return tuple([await lifecycle.cleanup(self, a, limits, keys, done=done) for a in agents])

    async def list(self, limit: int | None = None, search: str = "") -> tuple[SessionRow, ...]:
        """Rows, newest first; runs of cron jobs are hidden. Reads memory and ends of files."""
        wanted: Entries = []
        everything = await self.index.newest_first()
        self._listing.keep(everything)
        for number, entry in enumerate(everything):
            if limit is not None and len(wanted) >= limit:
                break
            if search and number % SEARCHED == SEARCHED - 1:
                await asyncio.sleep(0)
            hidden = ":run:" in entry.key and self.key(entry.key).is_cron_run
            if not hidden and (not search or matches(entry, search)):
                wanted.append(entry)
        return await self._listing.rows(wanted)

    async def close(self) -> None:
        """Write what is left; never raises."""
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for transcript in tuple(self._live.values()):
            await transcript.close()
        await self.index.close()
        await self.locks.close()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def path(self, entry: SessionEntry) -> Path:
        """Where the entry's transcript is. Raises ForeignTranscript."""
        return transcript_path(self._folder(entry), entry)

    async def end_transcript(self, path: Path) -> None:
        """Let nobody write to a transcript any more; what waits is written first."""
        opening = self._opening.get(path)
        if opening is not None:
            await asyncio.gather(opening, return_exceptions=True)
        live = self._live.pop(path, None)
        self._recent.pop(path, None)
        self._listing.look_again(path)
        if live is not None:
            await live.end()

    def _folder(self, entry: SessionEntry) -> Path:
        return self._state_dir.sessions_dir(self.key(entry.key).agent_id)

    async def _open(self, entry: SessionEntry, path: Path) -> Transcript:
        agent_id = self.key(entry.key).agent_id
        transcript = Transcript(
            self._world,
            path,
            entry.session_id,
            str(self._workspace(agent_id)),
            session_key=entry.key,
            durability=self._durability,
            before_first_write=lambda: self.index.commit(agent_id),
            locks=self.locks,
            told=lambda n, made: self._publish(
                MessageStored(key=entry.key, number=n, message=made)
            ),
        )
        await transcript.open()
        if transcript.repairs:
            self._tell_repairs(entry, transcript)
        self._live[path] = transcript
        self._listing.look_again(path)  # what it writes before it leaves memory is news
        self._touch(path, transcript)
        return transcript

    def _touch(self, path: Path, transcript: Transcript) -> None:
        now = self._world.clock.monotonic()
        self._recent[path] = (transcript, now)
        self._recent.move_to_end(path)
        if self._idle_timer is None:
            self._idle_timer = self._world.clock.call_later(IDLE_S, self._evict_idle)
        if len(self._recent) > KEPT_OPEN:
            self._evict(len(self._recent) - KEPT_OPEN, now)

    def _evict_idle(self) -> None:
        self._idle_timer = None
        now = self._world.clock.monotonic()
        self._evict(len(self._recent), now - IDLE_S)
        if self._recent:
            oldest = next(iter(self._recent.values()))[1]
            wait = max(1.0, oldest + IDLE_S - now)
            self._idle_timer = self._world.clock.call_later(wait, self._evict_idle)

    def _evict(self, most: int, before: float) -> None:
        """Forget settled transcripts last used at or before `before`, the oldest first."""
        old = [p for p, (talk, used) in self._recent.items() if used <= before and talk.settled]
        for path in old[:most]:
            del self._recent[path]

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
