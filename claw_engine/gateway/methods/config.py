"""`config.*`: the configuration, secrets hidden; replaced, patched, its schema.

`config.apply` and `config.patch` restart the engine, as OpenClaw's do; `config.set` leaves that to
the rules of reloading.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from claw_engine.gateway.control_limit import ControlLimit
from claw_engine.gateway.ports import ConfigFilePort, GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import Millis, NoParams, Params, Text
from claw_engine.protocol.names import Scope

RESTART_DELAY_MS = 2000


class ConfigSetParams(Params, frozen=True, kw_only=True):
    """`raw` is JSON5 text, `base_hash` the hash that config.get gave."""

    raw: Text
    base_hash: Text | None = None


class ConfigApplyParams(Params, frozen=True, kw_only=True):
    raw: Text
    base_hash: Text | None = None
    session_key: str | None = None
    note: str | None = None
    restart_delay_ms: Millis | None = None


class SchemaLookupParams(Params, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, max_length=1024)]


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def get(call: Call, params: NoParams) -> Payload:
        found = await parts.config.snapshot()
        if call.peer.identity.protocol < 4:
            return found
        shown, revision = found.get("config"), found.get("hash")
        return {**found, "sourceConfig": shown, "runtimeConfig": shown,
                "configRevisionHash": revision}  # fmt: skip

    async def schema(call: Call, params: NoParams) -> Payload:
        from claw_engine.config.schema import schema as whole  # only for whoever asks

        return whole(parts.host.version, parts.clock.now_ms())

    async def lookup(call: Call, params: SchemaLookupParams) -> Payload:
        from claw_engine.config.schema import lookup as look  # see above

        return look(params.path)

    reading = (
        method("config.get", Scope.READ, NoParams, get),
        method("config.schema", Scope.ADMIN, NoParams, schema),
        method("config.schema.lookup", Scope.ADMIN, SchemaLookupParams, lookup,
               scope4=Scope.READ),
    )  # fmt: skip
    return reading if parts.config_file is None else (*reading, *_writing(parts, parts.config_file))


def _writing(parts: GatewayParts, file: ConfigFilePort) -> tuple[Method, ...]:
    limit = ControlLimit(parts.clock)

    async def replace(call: Call, params: ConfigSetParams) -> Payload:
        config = await file.replace(params.raw, params.base_hash, restarts=True)
        return {"ok": True, "path": str(file.path), "config": config}

    async def apply(call: Call, params: ConfigApplyParams) -> Payload:
        limit.take("config.apply", call.peer.identity)
        config = await file.replace(params.raw, params.base_hash, restarts=False)
        return await _restarted("config-apply", params, config)

    async def patch(call: Call, params: ConfigApplyParams) -> Payload:
        limit.take("config.patch", call.peer.identity)
        config = await file.patch(params.raw, params.base_hash, restarts=False)
        return await _restarted("config-patch", params, config)

    async def _restarted(kind: str, params: ConfigApplyParams, config: Payload) -> Payload:
        payload: dict[str, object] = {
            "kind": kind,
            "status": "ok",
            "ts": parts.clock.now_ms(),
            "sessionKey": params.session_key,
            "message": params.note,
            "doctorHint": "Run: claw doctor",
            "stats": {"mode": kind.replace("-", "."), "root": parts.host.state_dir},
        }
        delay = RESTART_DELAY_MS if params.restart_delay_ms is None else params.restart_delay_ms
        sentinel: str | None = f"{parts.host.state_dir}/restart-sentinel.json"
        try:
            await parts.host.leave_note(payload)
        except OSError:  # the change is made and the restart comes: only the word is lost
            sentinel = None
        restart = parts.host.restart(kind.replace("-", "."), delay)
        return {
            "ok": True,
            "path": str(file.path),
            "config": config,
            "restart": restart,
            "sentinel": {"path": sentinel, "payload": payload},
        }

    return (
        method("config.set", Scope.ADMIN, ConfigSetParams, replace),
        method("config.apply", Scope.ADMIN, ConfigApplyParams, apply),
        method("config.patch", Scope.ADMIN, ConfigApplyParams, patch),
    )
