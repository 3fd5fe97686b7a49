"""Who is connected, as OpenClaw's clients show it, with the numbers of what they saw last.

The gateway itself is always in the list; command line clients, which come and go, never.
"""

from __future__ import annotations

import os
import socket

from claw_engine.gateway.peer import Identity, Peer
from claw_engine.world import Clock

MAX_ENTRIES = 200


class Presence:
    """The list, and `stateVersion` of presence and health."""

    def __init__(self, clock: Clock, version: str) -> None:
        self._clock = clock
        self._peers: dict[str, Peer] = {}
        self._since: dict[str, int] = {}
        self._presence = 1
        self._health = 0
        self._own = _own_entry(version, clock.now_ms())

    def add(self, peer: Peer) -> bool:
        """Whether the list changed."""
        if peer.identity.mode == "cli" or peer.identity.confined:
            return False
        self._peers[peer.conn_id] = peer
        self._since[peer.conn_id] = self._clock.now_ms()
        self._presence += 1
        return True

    def remove(self, peer: Peer) -> bool:
        """Whether the list changed."""
        if self._peers.pop(peer.conn_id, None) is None:
            return False
        self._since.pop(peer.conn_id, None)
        self._presence += 1
        return True

    def health_told(self) -> None:
        """Health was looked at anew."""
        self._health += 1

    def versions(self) -> dict[str, int]:
        return {"presence": self._presence, "health": self._health}

    def rows(self) -> list[dict[str, object]]:
        """The gateway, then clients, newest first; one entry for each device or instance."""
        rows: dict[str, dict[str, object]] = {}
        for conn_id, peer in reversed(self._peers.items()):
            who = peer.identity
            key = who.device_id or who.instance_id or conn_id
            if key not in rows and len(rows) < MAX_ENTRIES:
                rows[key] = _entry(who, self._since[conn_id])
        return [{**self._own, "ts": self._clock.now_ms()}, *rows.values()]


def _own_entry(version: str, now_ms: int) -> dict[str, object]:
    name, host = os.uname(), socket.gethostname()
    return {
        "host": host,
        "version": version,
        "platform": f"{name.sysname.lower()} {name.release}",
        "deviceFamily": name.sysname,
        "modelIdentifier": name.machine,
        "mode": "gateway",
        "reason": "self",
        "instanceId": f"gateway-{os.getpid()}",
        "text": f"Gateway: {host} · app {version} · mode gateway · reason self",
        "ts": now_ms,
    }


def _entry(who: Identity, since_ms: int) -> dict[str, object]:
    name = who.display_name or who.client_id
    fields: dict[str, object] = {
        "host": name, "ip": who.remote_ip, "version": who.version, "platform": who.platform,
        "deviceFamily": who.device_family, "modelIdentifier": who.model_identifier,
        "mode": who.mode, "reason": "connect", "deviceId": who.device_id, "roles": [who.role],
        "scopes": list(who.scope_names), "instanceId": who.instance_id,
        "text": f"Client: {name} · app {who.version} · mode {who.mode} · reason connect",
        "ts": since_ms,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value}
