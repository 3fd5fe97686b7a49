"""Paired devices and those that ask, in OpenClaw's files and formats (gateway digest §1.6).

`devices/paired.json` maps a device id to the device, `devices/pending.json` a request id to the
request. Unknown fields are kept. Every change is on disk before it is in force.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.gateway.auth.secrets import same
from claw_engine.protocol.names import Scope, allows
from claw_engine.storage.errors import disk_error
from claw_engine.storage.text import to_pretty
from claw_engine.world import World

PENDING_TTL_MS = 5 * 60 * 1000
MAX_PENDING = 100
"""Requests that may wait at once: strangers can make them."""

ROLE = "operator"

Record: TypeAlias = dict[str, object]


class DeviceStoreDamaged(ClawError):
    """A device file cannot be read; it is left alone until somebody mends it."""


class Claim(Struct, frozen=True):
    """What a connecting device says of itself."""

    device_id: str
    public_key: str
    scopes: tuple[str, ...]
    client_id: str = ""
    client_mode: str = ""
    display_name: str = ""
    platform: str = ""
    device_family: str = ""
    remote_ip: str = ""


class Devices:
    """Use: `await load()` once, then the rest. `tell(event, payload)` announces to operators."""

    def __init__(
        self, world: World, folder: Path, tell: Callable[[str, Mapping[str, object]], None]
    ) -> None:
        self._world = world
        self._paired_path = folder / "paired.json"
        self._pending_path = folder / "pending.json"
        self._tell = tell
        self._paired: dict[str, Record] = {}
        self._pending: dict[str, Record] = {}
        self._loaded = False
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Read the files, once. Raises DeviceStoreDamaged, StateDiskError."""
        async with self._lock:
            if not self._loaded:
                read = self._world.disk.run
                self._paired = await read(self._read, self._paired_path)
                self._pending = await read(self._read, self._pending_path)
                self._loaded = True

    # ── what there is ───────────────────────────────────────────────────────────────────────

    def get(self, device_id: str) -> Mapping[str, object] | None:
        """A paired device."""
        return self._paired.get(device_id)

    def pending(self) -> list[Mapping[str, object]]:
        """Requests that wait, newest first."""
        oldest = self._world.clock.now_ms() - PENDING_TTL_MS
        rows = [row for row in self._pending.values() if _int(row.get("ts")) > oldest]
        return sorted(rows, key=lambda row: -_int(row.get("ts")))

    def paired(self) -> list[Mapping[str, object]]:
        """Paired devices, newest first, without the tokens themselves."""
        rows = [_without_secrets(row) for row in self._paired.values()]
        return sorted(rows, key=lambda row: -_int(row.get("approvedAtMs")))

    def scopes(self, device_id: str) -> tuple[str, ...]:
        """What the operator granted this device."""
        row = self._paired.get(device_id, {})
        return _names(row.get("approvedScopes") or row.get("scopes"))

    def knows(self, device_id: str) -> bool:
        """Whether a device is paired; its id is the hash of its key."""
        return device_id in self._paired

    def token_scopes(self, device_id: str, token: str) -> tuple[str, ...] | None:
        """What a device token is good for; None when it is not this device's or was revoked."""
        entry = self._token(device_id)
        if entry is None or not token or entry.get("revokedAtMs"):
            return None
        stored = entry.get("token")
        if not isinstance(stored, str):
            return None
        return _names(entry.get("scopes")) if same(stored, token) else None

    # ── pairing ─────────────────────────────────────────────────────────────────────────────

    async def ask(self, claim: Claim, reason: str) -> str:
        """Have the operator decide about a device; the request's id. Asking again adds to it."""
        async with self._lock:
            now = self._world.clock.now_ms()
            pending = {
                key: row for key, row in self._pending.items()
                if _int(row.get("ts")) > now - PENDING_TTL_MS
            }  # fmt: skip
            known = next(
                (r for r in pending.values() if r.get("deviceId") == claim.device_id), None
            )
            if known is None and len(pending) >= MAX_PENDING:
                raise InvalidRequest(
                    "too many devices wait for pairing", hint="Decide about some: claw devices"
                )
            request_id = str(known["requestId"]) if known else self._world.ids.uuid()
            earlier = _names(known.get("scopes")) if known else ()
            row: Record = {
                **(known or {}),
                "requestId": request_id,
                **_claimed(claim),
                "role": ROLE,
                "roles": [ROLE],
                "scopes": list(dict.fromkeys((*earlier, *claim.scopes))),
                "silent": False,
                "isRepair": claim.device_id in self._paired,
                "ts": now,
            }
            pending[request_id] = row
            await self._write(pending=pending)
        if known is None or earlier != _names(row["scopes"]):
            self._tell("device.pair.requested", {**row, "reason": reason})
        return request_id

    async def pair(self, claim: Claim) -> None:
        """Pair without asking: a new device of this host that knows the secret."""
        async with self._lock:
            now = self._world.clock.now_ms()
            await self._write(paired={**self._paired, claim.device_id: _device(claim, None, now)})

    async def approve(
        self, request_id: str, *, may: Callable[[str], bool] = lambda scope: True
    ) -> Mapping[str, object]:
        """The device, now paired with what it asked for. `may`: what the approver could do
        himself. Raises InvalidRequest."""
        async with self._lock:
            row = self._asked(request_id)
            scopes = _names(row.get("scopes"))
            beyond = [scope for scope in scopes if not may(scope)]
            if beyond:
                raise InvalidRequest(
                    f"missing scope: {beyond[0]}",
                    hint="A device is granted only what you may do yourself.",
                )
            device_id = str(row["deviceId"])
            before = self._paired.get(device_id)
            now = self._world.clock.now_ms()
            device = _device(_claim_of(row), before, now)
            pending = {k: v for k, v in self._pending.items() if k != request_id}
            await self._write(paired={**self._paired, device_id: device}, pending=pending)
        self._resolved(request_id, device_id, "approved")
        return _without_secrets(device)

    async def reject(self, request_id: str) -> str:
        """The device's id. Raises InvalidRequest."""
        async with self._lock:
            device_id = str(self._asked(request_id)["deviceId"])
            await self._write(pending={k: v for k, v in self._pending.items() if k != request_id})
        self._resolved(request_id, device_id, "rejected")
        return device_id

    async def remove(self, device_id: str) -> None:
        """Forget a device and its tokens. Raises InvalidRequest."""
        async with self._lock:
            self._known(device_id)
            await self._write(paired={k: v for k, v in self._paired.items() if k != device_id})

    # ── tokens ──────────────────────────────────────────────────────────────────────────────

    async def token(self, device_id: str, scopes: Iterable[str]) -> tuple[str, int]:
        """The device's token for these scopes and when it was made (ms); made anew when there is
        none or it is good for other scopes."""
        async with self._lock:
            wanted = sorted(dict.fromkeys(scopes))
            entry = self._token(device_id)
            usable = entry is not None and not entry.get("revokedAtMs")
            if entry is not None and usable and sorted(_names(entry.get("scopes"))) == wanted:
                return str(entry["token"]), _int(entry.get("createdAtMs"))
            now = self._world.clock.now_ms()
            made: Record = {"token": self._world.ids.token(32), "role": ROLE, "scopes": wanted,
                            "createdAtMs": now}  # fmt: skip
            await self._store_token(device_id, made)
            return str(made["token"]), now

    async def rotate(self, device_id: str, role: str, scopes: Iterable[str] | None) -> Record:
        """A new token; the old one is dead. Its scopes stay, or become fewer.

        Raises InvalidRequest for an unknown device or role, and for more than it was granted.
        """
        async with self._lock:
            self._known(device_id)
            _operator_only(role)
            entry = self._token(device_id) or {}
            granted = self.scopes(device_id)
            wanted = _names(entry.get("scopes")) or granted if scopes is None else tuple(scopes)
            lacking = beyond(wanted, granted)
            if lacking:
                raise InvalidRequest(
                    f"the device was not granted {lacking[0]}",
                    hint="A scope that was not granted needs a pairing request of the device.",
                )
            now = self._world.clock.now_ms()
            made: Record = {
                "token": self._world.ids.token(32), "role": ROLE,
                "scopes": sorted(dict.fromkeys(wanted)),
                "createdAtMs": entry.get("createdAtMs", now), "rotatedAtMs": now,
            }  # fmt: skip
            await self._store_token(device_id, made)
            return {"deviceId": device_id, "role": ROLE, "token": made["token"],
                    "scopes": made["scopes"], "rotatedAtMs": now}  # fmt: skip

    async def revoke(self, device_id: str, role: str) -> Record:
        """The token is dead and none is made until the device is paired again or rotated.

        Raises InvalidRequest.
        """
        async with self._lock:
            self._known(device_id)
            _operator_only(role)
            now = self._world.clock.now_ms()
            entry = self._token(device_id)
            if entry is None:
                raise InvalidRequest("the device has no token of that role")
            await self._store_token(device_id, {**entry, "revokedAtMs": now})
            return {"deviceId": device_id, "role": ROLE, "revokedAtMs": now}

    def revoked(self, device_id: str) -> bool:
        entry = self._token(device_id)
        return entry is not None and bool(entry.get("revokedAtMs"))

    # ── files ───────────────────────────────────────────────────────────────────────────────

    def _token(self, device_id: str) -> Record | None:
        tokens = self._paired.get(device_id, {}).get("tokens")
        entry = tokens.get(ROLE) if isinstance(tokens, dict) else None
        return entry if isinstance(entry, dict) else None

    async def _store_token(self, device_id: str, entry: Record) -> None:
        row = self._paired[device_id]
        tokens = row.get("tokens")
        others = tokens if isinstance(tokens, dict) else {}
        changed = {**row, "tokens": {**others, ROLE: entry}}
        await self._write(paired={**self._paired, device_id: changed})

    def _asked(self, request_id: str) -> Record:
        row = self._pending.get(request_id)
        if row is None or all(row is not live for live in self.pending()):
            raise InvalidRequest("unknown requestId", hint="It may be older than five minutes.")
        return row

    def _known(self, device_id: str) -> None:
        if device_id not in self._paired:
            raise InvalidRequest("unknown deviceId")

    def _resolved(self, request_id: str, device_id: str, decision: str) -> None:
        now = self._world.clock.now_ms()
        told = {"requestId": request_id, "deviceId": device_id, "decision": decision, "ts": now}
        self._tell("device.pair.resolved", told)

    async def _write(
        self, *, paired: dict[str, Record] | None = None, pending: dict[str, Record] | None = None
    ) -> None:
        await self._world.disk.run(self._write_files, paired, pending)
        self._paired = self._paired if paired is None else paired
        self._pending = self._pending if pending is None else pending

    def _write_files(
        self, paired: dict[str, Record] | None, pending: dict[str, Record] | None
    ) -> None:
        disk = self._world.disk
        for path, rows in ((self._paired_path, paired), (self._pending_path, pending)):
            if rows is None:
                continue
            try:
                disk.mkdir(path.parent, 0o700)
                disk.replace(path, to_pretty(rows), mode=0o600)
            except OSError as error:
                raise disk_error(error, path) from error

    def _read(self, path: Path) -> dict[str, Record]:
        try:
            value = json.loads(self._world.disk.read_bytes(path) or b"{}")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise disk_error(error, path) from error
        except (ValueError, RecursionError) as error:
            raise DeviceStoreDamaged(
                f"{path} is no JSON: {error}.", hint="Mend it, or move it away and pair again."
            ) from error
        rows = value.items() if isinstance(value, dict) else ()
        return {key: row for key, row in rows if isinstance(row, dict)}


def beyond(asked: Iterable[str], granted: Iterable[str]) -> list[str]:
    """Scopes in `asked` that `granted` does not include."""
    have = frozenset(granted)
    known = frozenset(scope for scope in Scope if scope.value in have)
    return [name for name in asked if name not in have and not _implied(name, known)]


def _implied(name: str, known: frozenset[Scope]) -> bool:
    wanted = next((scope for scope in Scope if scope.value == name), None)
    return wanted is not None and wanted is not Scope.ADMIN and allows(known, wanted)


def _claimed(claim: Claim) -> Record:
    fields: Record = {
        "deviceId": claim.device_id, "publicKey": claim.public_key,
        "displayName": claim.display_name, "platform": claim.platform,
        "deviceFamily": claim.device_family, "clientId": claim.client_id,
        "clientMode": claim.client_mode, "remoteIp": claim.remote_ip,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value}


def _claim_of(row: Record) -> Claim:
    text = {key: str(row.get(key) or "") for key in (
        "deviceId", "publicKey", "clientId", "clientMode", "displayName", "platform",
        "deviceFamily", "remoteIp",
    )}  # fmt: skip
    return Claim(
        text["deviceId"], text["publicKey"], _names(row.get("scopes")), text["clientId"],
        text["clientMode"], text["displayName"], text["platform"], text["deviceFamily"],
        text["remoteIp"],
    )  # fmt: skip


def _device(claim: Claim, before: Record | None, now: int) -> Record:
    """A paired device; one that was paired before keeps its age and what it was granted. Its
    token does not stay: the next connection gets one for the new scopes."""
    same_key = before is not None and before.get("publicKey") == claim.public_key
    earlier = _names(before.get("approvedScopes")) if before is not None and same_key else ()
    scopes = list(dict.fromkeys((*earlier, *claim.scopes)))
    return {
        **(before or {}),
        **_claimed(claim),
        "role": ROLE,
        "roles": [ROLE],
        "scopes": scopes,
        "approvedScopes": scopes,
        "tokens": {},
        "createdAtMs": before.get("createdAtMs", now) if before is not None else now,
        "approvedAtMs": now,
    }


def _without_secrets(row: Record) -> Record:
    tokens = row.get("tokens")
    entries = tokens.values() if isinstance(tokens, dict) else ()
    shown = [{k: v for k, v in entry.items() if k != "token"} for entry in entries
             if isinstance(entry, dict)]  # fmt: skip
    return {**row, "tokens": shown}


def _operator_only(role: str) -> None:
    if role != ROLE:
        raise InvalidRequest(f"unknown role: {role}", hint="Devices here are operators.")


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
