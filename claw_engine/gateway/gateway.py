"""The gateway as one object: table, dispatcher, broadcaster and door, wired together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from claw_engine.gateway.broadcast import Broadcaster
from claw_engine.gateway.dispatch import Dispatcher
from claw_engine.gateway.door import Door
from claw_engine.gateway.handshake import hello
from claw_engine.gateway.methods.all import method_table
from claw_engine.gateway.methods.lanes import lanes_payload
from claw_engine.gateway.methods.system import status_payload, uptime_ms
from claw_engine.gateway.outbox import HARD_LIMIT, SOFT_LIMIT
from claw_engine.gateway.peer import Peer
from claw_engine.gateway.ports import GatewayParts
from claw_engine.paths import StateDir
from claw_engine.world import World


class Gateway:
    """Use: `start()`, `path = await open_door()`, …, `await close(reason)`.

    `env` is the process environment (for XDG_RUNTIME_DIR).
    """

    def __init__(
        self,
        world: World,
        parts: GatewayParts,
        state_dir: StateDir,
        env: Mapping[str, str],
        *,
        soft_limit: int = SOFT_LIMIT,
        hard_limit: int = HARD_LIMIT,
    ) -> None:
        self.parts = parts
        self.broadcaster = Broadcaster(parts.clock, parts.bus, lambda: lanes_payload(parts))
        self.dispatcher = Dispatcher(method_table(parts, self.broadcaster.catch_up))
        self.door = Door(
            world, state_dir, self.dispatcher, self.broadcaster, self.hello, env,
            soft_limit=soft_limit, hard_limit=hard_limit,
        )  # fmt: skip

    def start(self) -> None:
        """Follow the event bus. Before anything publishes."""
        self.broadcaster.start()

    async def open_door(self) -> Path:
        """Listen; the path belongs into gateway.lock as `door`. Raises DoorError."""
        return await self.door.open()

    async def hello(self, peer: Peer) -> dict[str, object]:
        """The hello-ok payload. A confined peer learns nothing from it."""
        if peer.identity.confined:
            features: dict[str, list[str]] = {"methods": ["health"], "events": []}
            snapshot: dict[str, object] = {}
        else:
            features = self.dispatcher.table.features()
            snapshot = await status_payload(self.parts)
        version, uptime = self.parts.host.version, uptime_ms(self.parts)
        limit = peer.outbox.hard_limit
        return hello(peer.conn_id, peer.identity, version, features, snapshot, uptime, limit)

    async def close(self, reason: str) -> None:
        """Tell the clients why, let them have their last words, remove the socket."""
        await self.broadcaster.stop(reason)
        await self.door.close()
