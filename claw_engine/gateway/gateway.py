"""The gateway as one object: table, dispatcher, broadcaster, door and port, wired together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from claw_engine.config.load import config_path
from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.events import Event, Notice
from claw_engine.gateway.auth.devices import Devices
from claw_engine.gateway.broadcast import Broadcaster
from claw_engine.gateway.dispatch import Dispatcher
from claw_engine.gateway.door import Door
from claw_engine.gateway.handshake import hello
from claw_engine.gateway.health import Health
from claw_engine.gateway.methods import devices as device_methods
from claw_engine.gateway.methods.all import method_table
from claw_engine.gateway.methods.lanes import lanes_payload
from claw_engine.gateway.methods.system import status_payload, uptime_ms
from claw_engine.gateway.outbox import HARD_LIMIT, SOFT_LIMIT
from claw_engine.gateway.peer import Peer
from claw_engine.gateway.port import Port
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.presence import Presence
from claw_engine.gateway.session import Shop
from claw_engine.gateway.session_rows import MAIN, default_agent, session_row
from claw_engine.gateway.wire_events import OVERHEAD, Audience, Delivery, WireEvent
from claw_engine.paths import StateDir
from claw_engine.protocol.names import Scope, allows
from claw_engine.world import World

log = logging.getLogger(__name__)

PORT_HARD_LIMIT = 50 * 1024 * 1024
"""Bytes that may wait for a client of the port (gateway digest §1.1)."""


class Gateway:
    """Use: `start()`, `path = await open_door()`, perhaps the port, …, `await close(reason)`.

    `env` is the process environment (for XDG_RUNTIME_DIR and the port's secrets). `settings` are
    those of the port now, `publish` reaches the operator.
    """

    def __init__(
        self,
        world: World,
        parts: GatewayParts,
        state_dir: StateDir,
        env: Mapping[str, str],
        *,
        settings: Callable[[], GatewaySettings] = GatewaySettings,
        publish: Callable[[Event], None] | None = None,
        soft_limit: int = SOFT_LIMIT,
        hard_limit: int = HARD_LIMIT,
        port_hard_limit: int = PORT_HARD_LIMIT,
    ) -> None:
        self.parts = parts
        self._publish = publish or parts.bus.publish
        self._config_path = config_path(state_dir, env)
        self._warned: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.broadcaster = Broadcaster(
            parts.clock, parts.bus, lambda: lanes_payload(parts),
            news=parts.sessions.news, session_row=lambda key: session_row(parts, key),
        )  # fmt: skip
        self.presence = Presence(parts.clock, parts.host.version)
        self._health = Health(parts)
        self.devices = Devices(world, state_dir.devices_dir, self._pairing)
        own = device_methods.methods(self.devices, self.presence, self._disconnect)
        self.dispatcher = Dispatcher(method_table(parts, self.broadcaster.catch_up, own))
        self.door = Door(
            world, state_dir, self.dispatcher, self.broadcaster, self.hello, env,
            soft_limit=soft_limit, hard_limit=hard_limit,
        )  # fmt: skip
        shop = Shop(
            parts.clock, parts.ids, self.dispatcher, self.broadcaster, self.hello, self._tasks,
            soft_limit, port_hard_limit, self._opened, self._closed,
        )  # fmt: skip
        self.port = Port(world, state_dir, parts, shop, settings, env, self.devices, self._warn)

    def start(self) -> None:
        """Follow the event bus. Before anything publishes."""
        self.broadcaster.start()

    async def open_door(self) -> Path:
        """Listen; the path belongs into gateway.lock as `door`. Raises DoorError."""
        return await self.door.open()

    async def hello(self, peer: Peer) -> dict[str, object]:
        """The hello-ok payload. Who may read nothing learns nothing from it."""
        who = peer.identity
        if who.confined:
            features: dict[str, list[str]] = {"methods": ["health"], "events": []}
            snapshot: dict[str, object] = {}
        else:
            features = self.dispatcher.table.features()
            readable = allows(who.scopes, Scope.READ)
            snapshot = await self._snapshot(peer) if readable else {}
        version, uptime = self.parts.host.version, uptime_ms(self.parts)
        limit = peer.outbox.hard_limit
        return hello(peer.conn_id, who, version, features, snapshot, uptime, limit)

    async def close(self, reason: str, expected_ms: int | None = None) -> None:
        """Tell the clients why and, of a restart, how long; let them have their last words, remove
        the socket."""
        await self.broadcaster.stop(reason, expected_ms)
        for task in list(self._tasks):
            task.cancel()
        done = await asyncio.gather(self.door.close(), self.port.close(), return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for error in done:
            if isinstance(error, Exception):
                log.error("a door did not close: %r", error)

    # ── what a client of the port is told at once ───────────────────────────────────────────

    async def _snapshot(self, peer: Peer) -> dict[str, object]:
        out = await status_payload(self.parts)
        if peer.identity.method == "door":
            return out
        agents = self.parts.agents
        return {
            **out,
            "presence": self.presence.rows(),
            "health": await self._health.snapshot(),
            "stateVersion": self.presence.versions(),
            "configPath": str(self._config_path),
            "sessionDefaults": {
                "defaultAgentId": default_agent(self.parts),
                "mainKey": MAIN,
                "mainSessionKey": self.parts.sessions.canonical(MAIN),
                "scope": "global" if agents is not None and agents.global_scope else "per-sender",
                "modelConfigured": self.parts.models.current().get("error") is None,
                "ownership": "sole",
                "selectionRequired": False,
            },
            "authMode": self.port.secrets.mode,
        }

    def _opened(self, peer: Peer) -> None:
        changed = self.presence.add(peer)
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._tell_health(peer), name=f"health for {peer.conn_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if changed:
            self._tell_presence()

    def _closed(self, peer: Peer) -> None:
        if self.presence.remove(peer):
            self._tell_presence()

    async def _tell_health(self, peer: Peer) -> None:
        """As OpenClaw does after each hello, but to the newcomer alone."""
        if not allows(peer.identity.scopes, Scope.READ):
            return
        payload = await self._health.snapshot()
        self.presence.health_told()
        versions = self.presence.versions()
        peer.outbox.put(WireEvent("health", payload, OVERHEAD * 8, state_version=versions))

    def _tell_presence(self) -> None:
        payload = {"presence": self.presence.rows()}
        versions = self.presence.versions()
        self.broadcaster.send(WireEvent(
            "presence", payload, OVERHEAD * 8, Delivery.DROPPABLE, group=("presence",),
            merge_key="presence", state_version=versions,
        ))  # fmt: skip

    # ── devices ─────────────────────────────────────────────────────────────────────────────

    def _pairing(self, event: str, payload: Mapping[str, object]) -> None:
        self.broadcaster.send(WireEvent(event, payload, OVERHEAD * 4, audience=Audience.PAIRERS))
        if event == "device.pair.resolved":
            code = f"pairing-{str(payload['deviceId'])[:12]}"
            self._warned.discard(code)
            now = self.parts.clock.now_ms()
            self._publish(Notice(code, "clear", "", "", "", sticky=False, ts=now))

    def _disconnect(self, device_id: str) -> None:
        self.port.disconnect(device_id)

    def _warn(self, code: str, text: str, hint: str) -> None:
        """Tell the operator, each matter once."""
        if code not in self._warned:
            self._warned.add(code)
            now = self.parts.clock.now_ms()
            self._publish(Notice(code, "warn", text, hint, "", sticky=True, ts=now))
