"""Paired devices and those that ask, in OpenClaw's files and formats (gateway digest §1.6).

`devices/paired.json` maps a device id to the device, `devices/pending.json` a request id to the
request. Unknown fields are kept. Every change is on disk before it is in force.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.gateway.auth.device_rows import (
    ROLE,
    Claim,
    Record,
    beyond,
    claim_of,
    claimed,
    int_in,
    names_in,
    paired_row,
    without_secrets,
)
from claw_engine.gateway.auth.secrets import same
from claw_engine.storage.errors import disk_error
from claw_engine.storage.text import to_pretty
from claw_engine.world import World

PENDING_TTL_MS = 5 * 60 * 1000
MAX_PENDING = 100
"""Requests that may wait at once: strangers can make them."""


class DeviceStoreDamaged(ClawError):
    """A device file cannot be read; it is left alone until somebody mends it."""


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
        self._joining: list[Claim] = []
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
        rows = [row for row in self._pending.values() if int_in(row.get("ts")) > oldest]
        return sorted(rows, key=lambda row: -int_in(row.get("ts")))

    def paired(self) -> list[Mapping[str, object]]:
        """Paired devices, newest first, without the tokens themselves."""
        rows = [without_secrets(row) for row in self._paired.values()]
        return sorted(rows, key=lambda row: -int_in(row.get("approvedAtMs")))

    def scopes(self, device_id: str) -> tuple[str, ...]:
        """What the operator granted this device."""
        row = self._paired.get(device_id, {})
        return names_in(row.get("approvedScopes") or row.get("scopes"))

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
        return names_in(entry.get("scopes")) if same(stored, token) else None

    # ── pairing ─────────────────────────────────────────────────────────────────────────────

    async def ask(self, claim: Claim, reason: str) -> str:
        """Have the operator decide about a device; the request's id. Asking again adds to it."""
        async with self._lock:
            now = self._world.clock.now_ms()
            pending = {
                key: row for key, row in self._pending.items()
                if int_in(row.get("ts")) > now - PENDING_TTL_MS
            }  # fmt: skip
            known = next(
                (r for r in pending.values() if r.get("deviceId") == claim.device_id), None
            )
            if known is None and len(pending) >= MAX_PENDING:
                raise InvalidRequest(
                    "too many devices wait for pairing", hint="Decide about some: claw devices"
                )
            request_id = str(known["requestId"]) if known else self._world.ids.uuid()
            earlier = names_in(known.get("scopes")) if known else ()
            row: Record = {
                **(known or {}),
                "requestId": request_id,
                **claimed(claim),
                "role": ROLE,
                "roles": [ROLE],
                "scopes": list(dict.fromkeys((*earlier, *claim.scopes))),
                "silent": False,
                "isRepair": claim.device_id in self._paired,
                "ts": now,
            }
            pending[request_id] = row
            await self._write(pending=pending)
        if known is None or earlier != names_in(row["scopes"]):
            self._tell("device.pair.requested", {**row, "reason": reason})
        return request_id

    async def pair(self, claim: Claim) -> None:
        """Pair without asking: a new device of this host that knows the secret. It has a token
        then. Many at once are one write, which the disk has to confirm."""
        self._joining.append(claim)
        async with self._lock:
            if not any(one is claim for one in self._joining):
                return  # the one before took it along
            joining, self._joining = self._joining, []
            new = {one.device_id: self._with_token(one) for one in joining}
            try:
                await self._write(paired={**self._paired, **new})
            except BaseException:
                self._joining += [one for one in joining if one is not claim]
                raise

    def _with_token(self, claim: Claim) -> Record:
        now = self._world.clock.now_ms()
        return {
            **paired_row(claim, None, now),
            "tokens": {ROLE: self._new_token(claim.scopes, now)},
        }

    def _new_token(self, scopes: Iterable[str], now: int) -> Record:
        return {
            "token": self._world.ids.token(32),
            "role": ROLE,
            "scopes": sorted(dict.fromkeys(scopes)),
            "createdAtMs": now,
        }

    async def approve(
        self, request_id: str, *, may: Callable[[str], bool] = lambda scope: True
    ) -> Mapping[str, object]:
        """The device, now paired with what it asked for. `may`: what the approver could do
        himself. Raises InvalidRequest."""
        async with self._lock:
            row = self._asked(request_id)
            scopes = names_in(row.get("scopes"))
            beyond = [scope for scope in scopes if not may(scope)]
            if beyond:
                raise InvalidRequest(
                    f"missing scope: {beyond[0]}",
                    hint="A device is granted only what you may do yourself.",
                )
            device_id = str(row["deviceId"])
            before = self._paired.get(device_id)
            now = self._world.clock.now_ms()
            device = paired_row(claim_of(row), before, now)
            pending = {k: v for k, v in self._pending.items() if k != request_id}
            await self._write(paired={**self._paired, device_id: device}, pending=pending)
        self._resolved(request_id, device_id, "approved")
        return without_secrets(device)

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
            if entry is not None and usable and sorted(names_in(entry.get("scopes"))) == wanted:
                return str(entry["token"]), int_in(entry.get("createdAtMs"))
            now = self._world.clock.now_ms()
            made = self._new_token(wanted, now)
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
            wanted = names_in(entry.get("scopes")) or granted if scopes is None else tuple(scopes)
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


def _operator_only(role: str) -> None:
    if role != ROLE:
        raise InvalidRequest(f"unknown role: {role}", hint="Devices here are operators.")
