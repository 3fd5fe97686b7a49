"""The local door: a Unix socket that only this user's processes can open, and only with the key.

Newline-delimited JSON with the frames of the gateway protocol. Both ends check the other's uid;
the client proves that it can read `door.key`. The caller holds the state directory's lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from claw_engine.gateway import confinement, door_key, door_path
from claw_engine.gateway.broadcast import Broadcaster
from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import Admit
from claw_engine.gateway.dispatch import Dispatcher
from claw_engine.gateway.door_path import DoorError
from claw_engine.gateway.door_wire import DoorWire
from claw_engine.gateway.handshake import Refusal, granted, identity_of
from claw_engine.gateway.outbox import HARD_LIMIT, SOFT_LIMIT
from claw_engine.gateway.peer import Identity
from claw_engine.gateway.session import ClientSession, Hello, Shop
from claw_engine.paths import StateDir
from claw_engine.world import World

log = logging.getLogger(__name__)

BACKLOG = 64
MAX_SESSIONS = 64
"""Connections at once; more are closed at the door."""


class Door:
    """Use: `path = await open()`, …, `await close()`."""

    def __init__(
        self,
        world: World,
        state_dir: StateDir,
        dispatcher: Dispatcher,
        broadcaster: Broadcaster,
        hello: Hello,
        env: Mapping[str, str],
        *,
        soft_limit: int = SOFT_LIMIT,
        hard_limit: int = HARD_LIMIT,
    ) -> None:
        self._world = world
        self._state_dir = state_dir
        self._env = env
        self._tasks: set[asyncio.Task[None]] = set()
        self._shop = Shop(
            world.clock, world.ids, dispatcher, broadcaster, hello, self._tasks,
            soft_limit, hard_limit,
        )  # fmt: skip
        self._sessions: dict[ClientSession, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._key = b""

    @property
    def sessions(self) -> int:
        """Connections at the moment."""
        return len(self._sessions)

    async def open(self) -> Path:
        """Listen; returns the socket's path, which the caller writes into gateway.lock.

        Raises DoorError.
        """
        self._key = await self._world.disk.run(door_key.load_or_create, self._state_dir.door_key)
        sock, self._path = self._bind()
        try:
            self._server = await asyncio.start_unix_server(self._accept, sock=sock, backlog=BACKLOG)
        except BaseException:
            sock.close()
            raise
        log.info("door open path=%s", self._path)
        return self._path

    async def close(self) -> None:
        """Take no more clients, let each have its last words, remove the socket."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        for session in list(self._sessions):
            session.end(Close.RESTART)
        waiting = [*self._sessions.values(), *self._tasks]
        if waiting:
            await asyncio.wait(waiting)
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _bind(self) -> tuple[socket.socket, Path]:
        failures: list[str] = []
        for path in door_path.candidates(self._state_dir, self._env, os.geteuid()):
            try:
                return _bound_socket(path), path
            except OSError as error:
                failures.append(f"{path}: {error.strerror}")
        raise DoorError(
            "No place for the local door's socket: " + "; ".join(failures),
            hint="Set XDG_RUNTIME_DIR to a directory of yours on a local disk.",
        )

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        try:
            who = confinement.peer_credentials(sock)
        except OSError:
            who = confinement.Credentials(0, -1)
        if who.uid != os.geteuid() or len(self._sessions) >= MAX_SESSIONS:
            log.warning("door refused pid=%d uid=%d open=%d", who.pid, who.uid, len(self._sessions))
            writer.transport.abort()
            return
        # Not on the disk's thread: a slow disk must not keep a client waiting at the door.
        confined = await asyncio.to_thread(confinement.descends_from_run, who.pid, os.getpid())

        async def admit(nonce: str, asked: Admit) -> Identity:
            return self._admit(nonce, asked, confined)

        session = ClientSession(self._shop, DoorWire(reader, writer), admit)
        task = asyncio.current_task()
        assert task is not None
        self._sessions[session] = task
        try:
            await session.run()
        finally:
            del self._sessions[session]

    def _admit(self, nonce: str, asked: Admit, confined: bool) -> Identity:
        params = asked.params
        if not door_key.proves(self._key, nonce, params.proof):
            raise Refusal(
                Close.UNAUTHORIZED,
                "unauthorized: the door's proof is missing or wrong",
                {"code": "DOOR_PROOF_INVALID", "hint": f"Read {self._state_dir.door_key}."},
            )
        scopes = frozenset() if confined else granted(params.scopes)
        return identity_of(params, asked.protocol, scopes, confined=confined)


def _bound_socket(path: Path) -> socket.socket:
    """A socket bound to `path`, 0600. Replaces a dead one: we hold the lock. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(17, "something that is no socket is there")
        path.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the new file the mode of the socket: it is never open to others, not briefly.
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(str(path))
        path.chmod(0o600)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
