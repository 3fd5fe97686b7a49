"""The grants in force, kept in `<state>/approvals/grants.json` (0600, replaced whole).

Owner of the file. A grant counts once it is on disk and stops counting at once when it is taken
back. It judges no command (grants.py does) and asks nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from claw_engine.approvals import grants
from claw_engine.approvals.errors import JournalError
from claw_engine.approvals.grants import Grant, Span
from claw_engine.approvals.model import ApprovalAsk
from claw_engine.storage.text import to_pretty
from claw_engine.world import World

log = logging.getLogger(__name__)

MOST = 200
"""Grants kept at once; one more is refused."""


class GrantBook:
    """Loop thread only; the file is touched on the disk executor."""

    def __init__(
        self,
        world: World,
        path: Path,
        changed: Callable[[], None],
        session_id: Callable[[str], str],
    ) -> None:
        self._world = world
        self._session_id = session_id
        self._path = path
        self._changed = changed
        self._grants: dict[str, Grant] = {}
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """Read what an earlier engine left. A damaged file grants nothing; it is kept aside."""
        try:
            data = await self._world.disk.run(self._world.disk.read_bytes, self._path)
        except OSError:
            return
        try:
            read = msgspec.json.decode(data, type=list[Grant])
        except msgspec.MsgspecError as error:
            aside = self._path.with_name(f"{self._path.name}.bad-{self._world.clock.now_ms()}")
            log.warning("grants.json allows nothing (%s); kept as %s", error, aside.name)
            try:
                await self._world.disk.run(self._world.disk.rename, self._path, aside)
            except OSError as failed:
                log.warning("grants.json could not be moved aside: %s", failed)
            return
        self._grants = {grant.id: grant for grant in read}
        self.list()

    def list(self) -> tuple[Grant, ...]:
        """Grants in force, the newest first; what is over is forgotten."""
        now = self._world.clock.now_ms()
        over = [
            grant.id
            for grant in self._grants.values()
            if grants.expired(grant, now) or self._begun_anew(grant)
        ]
        for grant_id in over:
            del self._grants[grant_id]
        return tuple(reversed(self._grants.values()))

    def covering(self, ask: ApprovalAsk) -> Grant | None:
        """The grant that answers a request, None when a person must."""
        now = self._world.clock.now_ms()
        return next((g for g in self.list() if grants.covers(g, ask, now)), None)

    async def add(self, grant: Grant) -> Grant:
        """Put a grant in force; one that says the same is renewed. Returns the one in force.

        Raises JournalError when it cannot be kept: then it is not in force.
        """
        same = next((old for old in self.list() if grants.same(old, grant)), None)
        if same is not None:
            grant = replace(same, until_ms=grant.until_ms, by=grant.by, made_ms=grant.made_ms)
        elif len(self._grants) >= MOST:
            raise JournalError(
                f"There are {MOST} grants already.", hint="Take some back: claw approvals undo ID."
            )
        async with self._writing:
            await self._save({**self._grants, grant.id: grant})
            self._grants[grant.id] = grant
        self._changed()
        return grant

    async def drop(self, grant_id: str) -> None:
        """Forget a grant whose answer could not be written."""
        if self._grants.pop(grant_id, None) is not None:
            self._changed()
            await self._note()

    async def used(self, grant: Grant, command: str) -> None:
        """Note a use. A full disk loses the note; the history has it anyway."""
        known = self._grants.get(grant.id)
        if known is None:
            return
        now = self._world.clock.now_ms()
        self._grants[grant.id] = replace(
            known, uses=known.uses + 1, last_used_ms=now, last_command=command
        )
        await self._note()
        self._changed()

    async def remove(self, grant_id: str) -> Grant | None:
        """Take a grant back, at once; the grant, or None when there is none.

        Raises JournalError when the file could not be written: it is out of force here, but the
        next start would find it again.
        """
        gone = self._grants.pop(grant_id, None)
        if gone is not None:
            self._changed()
            async with self._writing:
                await self._save(self._grants)
        return gone

    async def end_session(self, session_key: str) -> None:
        """The session begins anew: its grants end."""
        over = [
            grant.id
            for grant in self._grants.values()
            if grant.session_key == session_key and grant.span is not Span.LASTING
        ]
        for grant_id in over:
            del self._grants[grant_id]
        if over:
            self._changed()
            await self._note()

    def _begun_anew(self, grant: Grant) -> bool:
        """Whether the session it was made in is over, however that came about."""
        if grant.session_key is None:
            return False
        return grant.session_id != self._session_id(grant.session_key)

    async def _note(self) -> None:
        try:
            async with self._writing:  # one writer at a time: each writes all there is
                await self._save(self._grants)
        except JournalError as error:
            log.warning("grants: %s", error.sentence())

    async def _save(self, found: dict[str, Grant]) -> None:
        data = to_pretty(msgspec.to_builtins(list(found.values()))) + b"\n"
        try:
            await self._world.disk.run(self._write, data)
        except OSError as error:
            raise JournalError(
                f"The grants could not be written: {error.strerror or error}.",
                hint=f"Check free space and permissions of {self._path}.",
            ) from error

    def _write(self, data: bytes) -> None:
        self._world.disk.mkdir(self._path.parent)
        self._world.disk.replace(self._path, data)
