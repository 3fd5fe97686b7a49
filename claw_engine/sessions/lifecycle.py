"""How a session ends, begins anew, splits, and what upkeep takes away. Used by `Sessions`.

The index is durable before a file moves: a crash in between leaves an unlisted transcript, never
an entry without its talk.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.sessions import upkeep
from claw_engine.sessions.archive import Reason
from claw_engine.sessions.edits import COUNTERS, reset_entry
from claw_engine.sessions.entries import Header, has_assistant, iso
from claw_engine.sessions.entry import SessionEntry, named_path
from claw_engine.sessions.errors import ForeignTranscript
from claw_engine.sessions.keys import SessionKey
from claw_engine.sessions.maintenance import Action, Deed, Limits, plan
from claw_engine.sessions.upkeep import CleanupResult
from claw_engine.storage.errors import disk_error
from claw_engine.storage.text import to_line

if TYPE_CHECKING:
    from claw_engine.sessions.store import Sessions


async def reset(sessions: Sessions, key: str | SessionKey, reason: Reason) -> SessionEntry:
    world, index = sessions.world, sessions.index
    old = sessions.get(key)
    if old is None:
        return await index.ensure(key)
    path = _path(sessions, old)
    if path is not None:
        await sessions.end_transcript(path)
    session_id, now = world.ids.uuid(), world.clock.now_ms()
    new = await index.update(key, lambda entry: reset_entry(entry, session_id, now))
    await index.commit(sessions.key(key).agent_id)
    if path is not None:
        await _archive(sessions, path, reason)
    return new


async def delete(
    sessions: Sessions, key: str | SessionKey, *, keep_transcript: bool
) -> tuple[Path, ...] | None:
    wanted = sessions.key(key)
    if wanted.is_main or wanted.text == "global":
        raise InvalidRequest("The main session cannot be deleted.", hint="Reset it instead (/new).")
    old = sessions.get(wanted)
    if old is None:
        return None
    path = _path(sessions, old)
    if path is not None:
        await sessions.end_transcript(path)
    await sessions.index.remove(wanted)
    await sessions.index.commit(wanted.agent_id)
    if path is None or keep_transcript:
        return ()
    gone = await _archive(sessions, path, "deleted")
    return (gone,) if gone is not None else ()


async def cut(sessions: Sessions, key: str | SessionKey, max_lines: int) -> tuple[int, Path] | None:
    """Keep the header and the newest `max_lines` lines of a transcript, the old file as `.bak`.

    How many lines stayed and where the old file is; None when there is nothing to cut. Raises
    StateDiskError, LockHeld.
    """
    entry, world = sessions.get(key), sessions.world
    path = _path(sessions, entry) if entry is not None else None
    if path is None:
        return None
    await sessions.end_transcript(path)
    async with sessions.locks.hold(path):
        done = await world.disk.run(upkeep.cut, world.disk, path, max_lines, world.clock.now_ms())
    if done is not None:
        gone = dict.fromkeys((*COUNTERS, "totalTokensFresh"))
        await sessions.index.update(key, lambda entry: entry.replace(**gone))
    return done


async def fork(
    sessions: Sessions, parent: str | SessionKey, key: str | SessionKey, max_tokens: int
) -> SessionEntry:
    world, index = sessions.world, sessions.index
    source, existing = sessions.get(parent), sessions.get(key)
    if existing is not None and existing.session_id:
        return existing
    new = await index.ensure(key)
    tokens = source.number("totalTokens") or 0 if source is not None else 0
    if source is None or not source.session_id or (max_tokens and tokens > max_tokens):
        return new
    talk = await sessions.transcript(parent)
    await talk.reach(1 << 62)
    entries = list(talk.path_entries())
    if not any(map(has_assistant, entries)):
        return new
    entries[0] = replace(entries[0], parent_id=None)
    header = Header(
        new.session_id,
        iso(world.clock.now_ms()),
        talk.cwd,
        session_key=new.key,
        extra={"parentSession": str(talk.path)},
    )
    lines = b"".join(map(to_line, (header.to_json(), *(entry.to_json() for entry in entries))))
    await index.commit(sessions.key(key).agent_id)
    path = sessions.path(new)

    def write() -> None:
        try:
            world.disk.mkdir(path.parent, 0o700)
            world.disk.replace(path, lines)
        except OSError as error:
            raise disk_error(error, path) from error

    await world.disk.run(write)
    return await index.update(key, lambda entry: entry.replace(forkedFromParent=True))


async def cleanup(
    sessions: Sessions, agent_id: str, limits: Limits, active: Collection[str], *, done: bool
) -> CleanupResult:
    world, index = sessions.world, sessions.index
    folder, now = sessions.state_dir.sessions_dir(agent_id), world.clock.now_ms()
    if done:
        await index.flush()
    files = await world.disk.run(upkeep.survey, world.disk, folder)
    entries = index.of_agent(agent_id)
    named = {entry.key: named_path(folder, entry) for entry in entries}
    names = {key: path.name for key, path in named.items() if path is not None}
    actions = plan(entries, files, names, limits, now, active)
    if not done:
        return CleanupResult(agent_id, False, actions)
    failed: list[tuple[Action, str]] = []
    for action in actions:
        try:
            await _do(sessions, agent_id, folder, action, now)
        except ClawError as error:
            failed.append((action, error.title))
    await index.flush()
    return CleanupResult(agent_id, True, actions, tuple(failed))


async def _do(sessions: Sessions, agent_id: str, folder: Path, action: Action, now: int) -> None:
    world = sessions.world
    match action.deed:
        case Deed.ROTATE:
            await world.disk.run(upkeep.rotate, world.disk, folder, now)
        case Deed.DELETE:
            await world.disk.run(upkeep.delete, world.disk, folder / action.target)
        case Deed.REMOVE | Deed.DROP:
            old = sessions.get(action.target)
            path = _path(sessions, old) if old is not None else None
            if path is not None:
                await sessions.end_transcript(path)
            await sessions.index.remove(action.target)
            if path is None:
                return
            await sessions.index.commit(agent_id)
            if action.deed is Deed.REMOVE:
                await _archive(sessions, path, "deleted")
            elif not _is_listed(sessions, path):
                await world.disk.run(upkeep.delete, world.disk, path)


def _path(sessions: Sessions, entry: SessionEntry) -> Path | None:
    """The entry's own transcript; None when it has none or it lies outside the folder."""
    try:
        return sessions.path(entry)
    except ForeignTranscript:
        return None


def _is_listed(sessions: Sessions, path: Path) -> bool:
    """Whether another entry still means this file."""
    folder = path.parent
    agent = folder.parent.name
    return any(named_path(folder, entry) == path for entry in sessions.index.of_agent(agent))


async def _archive(sessions: Sessions, path: Path, reason: Reason) -> Path | None:
    if _is_listed(sessions, path):
        return None
    world = sessions.world
    async with sessions.locks.hold(path):
        return await world.disk.run(upkeep.archive, world.disk, path, reason, world.clock.now_ms())
