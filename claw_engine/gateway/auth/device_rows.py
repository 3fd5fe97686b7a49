"""A device as OpenClaw's files have it, what it claims, and what it was granted. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from claw_engine.protocol.names import Scope, allows

ROLE = "operator"

Record: TypeAlias = dict[str, object]


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


def beyond(asked: Iterable[str], granted: Iterable[str]) -> list[str]:
    """Scopes in `asked` that `granted` does not include."""
    have = frozenset(granted)
    known = frozenset(scope for scope in Scope if scope.value in have)
    return [name for name in asked if name not in have and not _implied(name, known)]


def _implied(name: str, known: frozenset[Scope]) -> bool:
    wanted = next((scope for scope in Scope if scope.value == name), None)
    return wanted is not None and wanted is not Scope.ADMIN and allows(known, wanted)


def claimed(claim: Claim) -> Record:
    fields: Record = {
        "deviceId": claim.device_id, "publicKey": claim.public_key,
        "displayName": claim.display_name, "platform": claim.platform,
        "deviceFamily": claim.device_family, "clientId": claim.client_id,
        "clientMode": claim.client_mode, "remoteIp": claim.remote_ip,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value}


def claim_of(row: Record) -> Claim:
    text = {key: str(row.get(key) or "") for key in (
        "deviceId", "publicKey", "clientId", "clientMode", "displayName", "platform",
        "deviceFamily", "remoteIp",
    )}  # fmt: skip
    return Claim(
        text["deviceId"], text["publicKey"], names_in(row.get("scopes")), text["clientId"],
        text["clientMode"], text["displayName"], text["platform"], text["deviceFamily"],
        text["remoteIp"],
    )  # fmt: skip


def paired_row(claim: Claim, before: Record | None, now: int) -> Record:
    """A paired device; one that was paired before keeps its age and what it was granted. Its
    token does not stay: the next connection gets one for the new scopes."""
    same_key = before is not None and before.get("publicKey") == claim.public_key
    earlier = names_in(before.get("approvedScopes")) if before is not None and same_key else ()
    scopes = list(dict.fromkeys((*earlier, *claim.scopes)))
    return {
        **(before or {}),
        **claimed(claim),
        "role": ROLE,
        "roles": [ROLE],
        "scopes": scopes,
        "approvedScopes": scopes,
        "tokens": {},
        "createdAtMs": before.get("createdAtMs", now) if before is not None else now,
        "approvedAtMs": now,
    }


def without_secrets(row: Record) -> Record:
    tokens = row.get("tokens")
    entries = tokens.values() if isinstance(tokens, dict) else ()
    shown = [{k: v for k, v in entry.items() if k != "token"} for entry in entries
             if isinstance(entry, dict)]  # fmt: skip
    return {**row, "tokens": shown}


def names_in(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list | tuple) else ()


def int_in(value: object) -> int:
    return value if isinstance(value, int) else 0
