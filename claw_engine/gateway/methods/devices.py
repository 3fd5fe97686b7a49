"""`device.*`: who asks to be let in, who is, and their tokens; `system-presence`: who is here."""

from __future__ import annotations

from collections.abc import Callable

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.auth.device_rows import beyond
from claw_engine.gateway.auth.devices import Devices
from claw_engine.gateway.presence import Presence
from claw_engine.gateway.table import Answer, Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams, Params, Text
from claw_engine.protocol.names import Scope


class RequestIdParams(Params, frozen=True, kw_only=True):
    request_id: Text


class DeviceIdParams(Params, frozen=True, kw_only=True):
    device_id: Text


class RotateParams(Params, frozen=True, kw_only=True):
    device_id: Text
    role: Text
    scopes: list[str] | None = None


class RevokeParams(Params, frozen=True, kw_only=True):
    device_id: Text
    role: Text


def methods(
    devices: Devices, presence: Presence, disconnect: Callable[[str], None]
) -> tuple[Method, ...]:
    """`disconnect` ends the connections of a device."""

    async def pair_list(call: Call, params: NoParams) -> Payload:
        await devices.load()
        return {"pending": devices.pending(), "paired": devices.paired()}

    async def approve(call: Call, params: RequestIdParams) -> Payload:
        await devices.load()
        device = await devices.approve(params.request_id, may=lambda scope: _may(call, [scope]))
        return {"requestId": params.request_id, "device": device}

    async def reject(call: Call, params: RequestIdParams) -> Payload:
        await devices.load()
        device_id = await devices.reject(params.request_id)
        return {"requestId": params.request_id, "deviceId": device_id}

    async def remove(call: Call, params: DeviceIdParams) -> Payload:
        await devices.load()
        await devices.remove(params.device_id)
        disconnect(params.device_id)
        return {"deviceId": params.device_id}

    async def rotate(call: Call, params: RotateParams) -> Payload:
        await devices.load()
        # The answer holds the token: it must not be worth more than the asker is.
        scopes = devices.scopes(params.device_id) if params.scopes is None else params.scopes
        if not _may(call, scopes):
            raise InvalidRequest(
                f"missing scope: {beyond(scopes, _own(call))[0]}",
                hint="A token can be made only by somebody who may as much.",
            )
        return await devices.rotate(params.device_id, params.role, params.scopes)

    async def revoke(call: Call, params: RevokeParams) -> Payload:
        await devices.load()
        done = await devices.revoke(params.device_id, params.role)
        disconnect(params.device_id)
        return done

    async def system_presence(call: Call, params: NoParams) -> Answer:
        return presence.rows()

    return (
        method("device.pair.list", Scope.PAIRING, NoParams, pair_list),
        method("device.pair.approve", Scope.PAIRING, RequestIdParams, approve),
        method("device.pair.reject", Scope.PAIRING, RequestIdParams, reject),
        method("device.pair.remove", Scope.PAIRING, DeviceIdParams, remove),
        method("device.token.rotate", Scope.PAIRING, RotateParams, rotate),
        method("device.token.revoke", Scope.PAIRING, RevokeParams, revoke),
        method("system-presence", Scope.READ, NoParams, system_presence),
    )


def _own(call: Call) -> list[str]:
    return [scope.value for scope in call.peer.identity.scopes]


def _may(call: Call, scopes: list[str] | tuple[str, ...]) -> bool:
    return not beyond(scopes, _own(call))
