"""exec-approvals.json as a whole, for who edits it as a whole (`exec.approvals.get` and `.set`).

Who sets must have seen what is there (`base_hash`); the socket's token is never shown and never
changed. It judges no rule.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from msgspec import Struct

from claw_engine.approvals import rulefile
from claw_engine.approvals.errors import RulesError
from claw_engine.errors import InvalidRequest
from claw_engine.storage.text import to_pretty
from claw_engine.world import World

Json = dict[str, object]

_AGAIN = "re-run exec.approvals.get and retry"


class Snapshot(Struct, frozen=True):
    """The file: `hash` is the sha256 (hex) of its text, of "" when there is none."""

    path: str
    exists: bool
    hash: str
    file: Json


class RulesFile:
    """Reads and replaces on the disk executor, in one order with all other writers of the file."""

    def __init__(self, world: World, path: Path) -> None:
        self._world = world
        self._path = path

    async def snapshot(self) -> Snapshot:
        """What is there now, without the token. Raises RulesError when it cannot be read."""
        return await self._world.disk.run(self._snapshot)

    async def replace(self, file: Json, base_hash: str | None) -> Snapshot:
        """Put `file` in the place of what is there. Raises InvalidRequest for a file that is no
        rules file, and for a missing or stale `base_hash`; RulesError when it cannot be written.
        """
        return await self._world.disk.run(self._replace, file, base_hash)

    def _read(self) -> bytes | None:
        try:
            return self._world.disk.read_bytes(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RulesError(
                f"{self._path.name} cannot be read: {error.strerror or error}.",
                hint=f"Check the permissions of {self._path}.",
            ) from error

    def _snapshot(self) -> Snapshot:
        raw = self._read()
        found = rulefile.read(raw) if raw is not None else rulefile.empty()
        return Snapshot(
            str(self._path),
            raw is not None,
            hashlib.sha256(raw or b"").hexdigest(),
            _without_token(found.data),
        )

    def _replace(self, file: Json, base_hash: str | None) -> Snapshot:
        raw = self._read()
        if raw is not None and base_hash is None:
            raise InvalidRequest(f"exec approvals base hash required; {_AGAIN}")
        if base_hash is not None and base_hash != hashlib.sha256(raw or b"").hexdigest():
            raise InvalidRequest(f"exec approvals changed since last load; {_AGAIN}")
        checked = rulefile.read(json.dumps(file).encode())
        if checked.problem is not None:
            raise InvalidRequest(f"file {checked.problem}")
        before = rulefile.read(raw).data if raw is not None else {}
        data = _with_token(checked.data, before)
        try:
            self._world.disk.mkdir(self._path.parent)
            self._world.disk.replace(self._path, to_pretty(data) + b"\n")
        except OSError as error:
            raise RulesError(
                f"The approval rules could not be written: {error.strerror or error}.",
                hint=f"Check free space and permissions of {self._path}.",
            ) from error
        return self._snapshot()


def _without_token(data: Json) -> Json:
    socket = data.get("socket")
    if not isinstance(socket, dict):
        return data
    return {**data, "socket": {k: v for k, v in socket.items() if k != "token"}}


def _with_token(data: Json, before: Json) -> Json:
    """`data` with the socket of the file before: it is not the editor's to change."""
    out = {name: value for name, value in data.items() if name != "socket"}
    if "socket" in before:
        out = {"version": out.get("version"), "socket": before["socket"], **out}
    return out
