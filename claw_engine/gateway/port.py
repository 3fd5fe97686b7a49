"""The network port as a whole: bound at the start, served once the engine is ready.

Binding imports nothing of HTTP and is done first, so that a taken port is known at once; clients
that come in between wait in the backlog.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.gateway.auth.devices import Devices
from claw_engine.gateway.auth.secrets import Secrets, resolve
from claw_engine.gateway.close import Close
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.session import Shop
from claw_engine.gateway.web import bind
from claw_engine.paths import StateDir
from claw_engine.world import World

if TYPE_CHECKING:
    from claw_engine.gateway.web.server import WebServer
    from claw_engine.gateway.web.site import PortSite

log = logging.getLogger(__name__)


class Port:
    """Use: `bind(named)`, `await serve()`, …, `await close()`.

    `settings` is asked whenever something is decided, so a reload needs no restart of the port.
    """

    def __init__(
        self,
        world: World,
        state_dir: StateDir,
        parts: GatewayParts,
        shop: Shop,
        settings: Callable[[], GatewaySettings],
        env: Mapping[str, str],
        devices: Devices,
        warn: Callable[[str, str, str], None],
    ) -> None:
        self._world = world
        self._parts = parts
        self._shop = shop
        self._settings = settings
        self._env = env
        self._tls_dir: Path = state_dir.root / "gateway" / "tls"
        self._warn = warn
        self._devices = devices
        self._sockets: list[socket.socket] = []
        self._server: WebServer | None = None
        self._site: PortSite | None = None
        self.number: int | None = None
        """The port in use; None while there is none."""

    @property
    def secrets(self) -> Secrets:
        """What is asked of clients."""
        return resolve(self._settings().auth, self._env)

    @property
    def sessions(self) -> int:
        """WebSocket clients at the moment."""
        return self._site.sessions if self._site is not None else 0

    def bind(self, named: int | None) -> int:
        """Take the port; its number. Raises PortError, PortTaken."""
        settings = self._settings()
        number = bind.wanted_port(settings, self._env, named)
        self._sockets = bind.listen(bind.addresses(settings, self.secrets), number)
        self.number = int(self._sockets[0].getsockname()[1])
        return self.number

    async def serve(self) -> None:
        """Answer whoever comes. Raises PortError, DeviceStoreDamaged, StateDiskError."""
        await self._devices.load()
        # In a thread: a fifth of a second of imports, which nobody who is ready waits for.
        await asyncio.to_thread(_load)
        from claw_engine.gateway.auth.admission import Gatekeeper  # lazily: see above
        from claw_engine.gateway.web.server import WebServer
        from claw_engine.gateway.web.site import PortSite

        tls = None
        if self._settings().tls.enabled:
            from claw_engine.gateway.web.certificate import context  # with TLS only

            tls = await asyncio.to_thread(context, self._settings().tls, self._tls_dir)
        keeper = Gatekeeper(self._world.clock, self._settings, self._env, self._devices, self._warn)
        site = self._site = PortSite(self._shop, keeper, self._parts, self._settings)
        server = self._server = WebServer(site, tls)
        sockets, self._sockets = self._sockets, []
        await server.start(sockets)
        log.info("port open number=%s tls=%s auth=%s", self.number, tls is not None,
                 self.secrets.mode)  # fmt: skip

    def disconnect(self, device_id: str) -> None:
        """End the connections of a device whose access was taken back."""
        if self._site is not None:
            self._site.disconnect(device_id, Close.REVOKED)

    async def close(self) -> None:
        """Take no more clients and let each have its last words."""
        for sock in self._sockets:
            sock.close()
        self._sockets = []
        if self._server is not None and self._site is not None:
            self._server.stop_listening()
            self._site.close()
            await self._server.close()
        self.number = None


def _load() -> None:
    import claw_engine.gateway.web.server
    import claw_engine.gateway.web.site  # noqa: F401 - only to have them loaded
