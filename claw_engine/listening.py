"""The engine's network port: taken before the engine is ready, served right after.

An engine that is a console's goes on without the port when it cannot have it, and says so; one
that is there to be reached does not start. The first start makes the port's token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from claw_engine.config.load import ConfigStore
from claw_engine.config.settings import Settings
from claw_engine.errors import ClawError
from claw_engine.gateway.port import Port
from claw_engine.gateway.web.bind import PortError
from claw_engine.notices import NoticeBoard
from claw_engine.world import World

log = logging.getLogger("claw.engine")

NOTICE = "port"
TOKEN_BYTES = 32
TOKEN_PATH = ("gateway", "auth", "token")


class Listening:
    """Use: `bind(named)`, `start()`, …, `await stop()`.

    `apply` puts a changed configuration in force. `needed`: no engine without the port. Serving
    waits for `begin`; clients that come before it wait in the backlog.
    """

    def __init__(
        self,
        world: World,
        port: Port,
        config: ConfigStore,
        board: NoticeBoard,
        apply: Callable[[Settings], None],
        *,
        needed: bool,
        begin: asyncio.Event,
    ) -> None:
        self._apply = apply
        self._world = world
        self._port = port
        self._config = config
        self._board = board
        self._needed = needed
        self._begin = begin
        self._task: asyncio.Task[None] | None = None

    def bind(self, named: int | None) -> int | None:
        """Take the port; its number. Raises PortError when it is needed and cannot be had."""
        try:
            return self._port.bind(named)
        except PortError as error:
            if self._needed:
                raise
            self._tell(error)
            return None

    def start(self) -> None:
        """Serve, once that is prepared; returns at once."""
        if self._port.number is not None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._serve(), name="port")

    async def served(self) -> None:
        """Wait until the port answers, or cannot."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Give up what is being prepared; the gateway closes what is open."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _serve(self) -> None:
        try:
            await self._begin.wait()
            await self._make_token()
            await self._port.serve()
        except ClawError as error:
            await self._port.close()
            self._tell(error)
        except Exception as error:
            log.exception("the port cannot be served")
            await self._port.close()
            self._tell(PortError(f"The port cannot be served: {error!r}."))

    async def _make_token(self) -> None:
        """A token of the first start, so that the port is never open to everybody."""
        secrets = self._port.secrets
        if secrets.mode != "token" or secrets.shared:
            return
        token = self._world.ids.token(TOKEN_BYTES)
        changed = await self._config.put(TOKEN_PATH, token)
        self._apply(changed.loaded.settings)  # the log must not tell it
        self._board.tell(
            "port-token", "info", "A token for the gateway's port was made.",
            text=f"It stands in {self._config.path} under gateway.auth.token.",
        )  # fmt: skip

    def _tell(self, error: ClawError) -> None:
        log.warning("no port: %s", error.sentence())
        hint = f"{error.hint} The local door works all the same.".strip()
        self._board.tell(NOTICE, "warn", error.title, hint=hint, sticky=True)
