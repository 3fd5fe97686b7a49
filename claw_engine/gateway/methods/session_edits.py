"""Changing sessions: `sessions.create`, `.patch`, `.reset`, `.delete`, `.compact`.

Which settings there are, the sessions room knows; the words of both protocols for them are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.gateway.client_ports import EditsPort
from claw_engine.gateway.methods.chat import Sayer, SendParams
from claw_engine.gateway.methods.sessions import full_key
from claw_engine.gateway.ports import GatewayParts, QueuePort
from claw_engine.gateway.session_rows import (
    RUNTIME,
    THINKING,
    default_agent,
    model_defaults,
    session_row,
)
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.translate4 import agent_of
from claw_engine.gateway.validate import Count, OpenParams, Params, RunId, Text, Thinking
from claw_engine.protocol.names import Scope

LINES3 = 400
"""Lines that `sessions.compact` keeps under protocol 3 when it is told no number."""

MODES = ("read-only", "guarded", "workspace", "full")
"""Permission modes of a session, the strictest first (protocol digest §2.3)."""

_ENGINE_MODE = {"look": "read-only"}
_RETIRED = (
    "execSecurity/execAsk are retired; set permissionMode (read-only|guarded|workspace|full) "
    "instead, or use /exec for this run only."
)


class NoCompaction(ClawError):
    """Nothing here makes a summary of a conversation."""


class CreateParams(Params, frozen=True, kw_only=True):
    """A new session: its key, else one is made up; `message` is its first."""

    key: Text | None = None
    agent_id: Text | None = None
    label: Text | None = None
    model: Text | None = None
    thinking: Thinking | None = None
    parent_session_key: Text | None = None
    fork: bool = False
    succeeds_parent: bool = False
    emit_command_hooks: bool = False
    message: str | None = None
    idempotency_key: RunId | None = None


class ResetParams(Params, frozen=True, kw_only=True):
    key: Text
    agent_id: Text | None = None
    reason: Literal["new", "reset"] = "reset"
    expected_session_id: Text | None = None


class DeleteParams(Params, frozen=True, kw_only=True):
    """There are no hooks on the end of a session; `emit_lifecycle_hooks` finds none."""

    key: Text
    agent_id: Text | None = None
    delete_transcript: bool = True
    emit_lifecycle_hooks: bool = True
    expected_session_id: Text | None = None
    archived_only: bool = False


class CompactParams(Params, frozen=True, kw_only=True):
    key: Text
    agent_id: Text | None = None
    max_lines: Count | None = None


class PatchParams(OpenParams, frozen=True, kw_only=True):
    """Which fields there are, the sessions room knows."""

    key: Text
    agent_id: Text | None = None
    expected_session_id: Text | None = None


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    """Nothing without a queue behind the gateway."""
    found: tuple[Method, ...] = ()
    if parts.queue is not None:
        found = _life(parts, parts.queue)
        if parts.edits is not None:
            found += _making(parts, parts.queue, parts.edits)
    return found


def _life(parts: GatewayParts, queue: QueuePort) -> tuple[Method, ...]:
    async def reset(call: Call, params: ResetParams) -> Payload:
        key = full_key(parts, params.key, params.agent_id)
        _expect(parts, key, params.expected_session_id)
        entry = dict(await queue.reset(key, params.reason))
        four = call.peer.identity.protocol >= 4
        return {"ok": True, "key": key, "entry": entry, "resolved": _resolved(parts, key, four)}

    async def delete(call: Call, params: DeleteParams) -> Payload:
        _refuse_web(call, "delete")
        key = full_key(parts, params.key, params.agent_id)
        _expect(parts, key, params.expected_session_id)
        if params.archived_only and not (session_row(parts, key) or {}).get("archived"):
            raise InvalidRequest(f"session {key} is not archived")
        gone = await queue.delete(key, keep_transcript=not params.delete_transcript)
        return {"ok": True, "key": key, "deleted": gone is not None, "archived": list(gone or ())}

    async def patch(call: Call, params: PatchParams) -> Payload:
        _refuse_web(call, "patch")
        key = full_key(parts, params.key, params.agent_id)
        _expect(parts, key, params.expected_session_id)
        four = call.peer.identity.protocol >= 4
        fields = _fields(parts, params.rest, four=four)
        if four:
            _refuse_level(parts, key, fields)
        entry = dict(await queue.patch(key, fields))
        path = parts.edits.store_path(agent_of(key)) if parts.edits is not None else ""
        return {"ok": True, "path": path, "key": key, "entry": entry,
                "resolved": _resolved(parts, key, four)}  # fmt: skip

    return (
        method("sessions.reset", Scope.ADMIN, ResetParams, reset),
        method("sessions.delete", Scope.ADMIN, DeleteParams, delete),
        method("sessions.patch", Scope.ADMIN, PatchParams, patch, scope4=Scope.WRITE),
    )


def _making(parts: GatewayParts, queue: QueuePort, edits: EditsPort) -> tuple[Method, ...]:
    say = Sayer(parts)

    async def create(call: Call, params: CreateParams) -> Payload:
        key = _new_key(parts, params)
        parent = params.parent_session_key
        known = full_key(parts, parent, params.agent_id) if parent is not None else None
        chosen = {"label": params.label, "model": params.model, "thinkingLevel": params.thinking}
        wanted = {name: value for name, value in chosen.items() if value is not None}
        began = await edits.create(key, known if params.fork else None)
        entry = await queue.patch(key, wanted) if wanted else began.entry
        out: dict[str, object] = {
            "ok": True, "key": key, "sessionId": began.session_id, "entry": dict(entry),
        }  # fmt: skip
        if params.message is None:
            return out
        run_id = params.idempotency_key or parts.ids.uuid()
        said = SendParams(session_key=key, message=params.message, idempotency_key=run_id)
        try:
            sent = await say.send(call, said)
        except ClawError as error:
            return {**out, "runStarted": False, "runError": error.sentence()}
        return {**out, "runStarted": "runId" in sent, "runId": run_id}

    async def compact(call: Call, params: CompactParams) -> Payload:
        key = full_key(parts, params.key, params.agent_id)
        lines = params.max_lines
        if lines is None and call.peer.identity.protocol >= 4:
            raise NoCompaction(
                "Nothing here makes a summary of a conversation yet.",
                hint="maxLines keeps the newest lines of its transcript instead.",
            )
        row = parts.sessions.row(key)
        if row is None or row.session_id is None:
            return {"ok": True, "key": key, "compacted": False, "reason": "no sessionId"}
        done = await edits.cut(key, lines or LINES3)
        if done is None:
            return {"ok": True, "key": key, "compacted": False, "reason": "no transcript"}
        kept, archived = done
        return {"ok": True, "key": key, "compacted": True, "kept": kept, "archived": archived}

    return (
        method("sessions.create", Scope.WRITE, CreateParams, create),
        method("sessions.compact", Scope.ADMIN, CompactParams, compact),
    )


def _refuse_web(call: Call, what: str) -> None:
    """Raises InvalidRequest for a chat page: of web clients the control page alone edits."""
    who = call.peer.identity
    if who.mode == "webchat" and who.client_id != "openclaw-control-ui":
        raise InvalidRequest(
            f"webchat clients cannot {what} sessions", hint="chat.send says /new, /model, …"
        )


def _new_key(parts: GatewayParts, params: CreateParams) -> str:
    if params.key is not None:
        return full_key(parts, params.key, params.agent_id)
    agent = params.agent_id or default_agent(parts)
    return parts.sessions.canonical(f"agent:{agent}:chat:{parts.ids.uuid()}")


def _expect(parts: GatewayParts, key: str, session_id: str | None) -> None:
    """Raises InvalidRequest when the session began anew meanwhile."""
    row = parts.sessions.row(key)
    if session_id is not None and (row is None or row.session_id != session_id):
        raise InvalidRequest(f"session {key} changed: expected sessionId {session_id}")


def _fields(
    parts: GatewayParts, given: Mapping[str, object], *, four: bool
) -> Mapping[str, object]:
    """The settings as the sessions room knows them. Raises InvalidRequest."""
    if four and ("execSecurity" in given or "execAsk" in given):
        raise InvalidRequest(_RETIRED)
    mode = given.get("permissionMode")
    if mode is not None:
        if mode not in MODES:
            raise InvalidRequest(f"invalid permissionMode (use {'|'.join(MODES)})")
        engine = parts.permission.mode().value if parts.permission is not None else "guarded"
        widest = _ENGINE_MODE.get(engine, engine)
        if MODES.index(str(mode)) > MODES.index(widest):
            raise InvalidRequest(
                f"permissionMode {mode} is wider than the engine's: {widest}.",
                hint="permission.set changes the engine's; a session can only be stricter.",
            )
    return given


def _resolved(parts: GatewayParts, key: str, four: bool) -> dict[str, object]:
    """What answers in the session now."""
    row = session_row(parts, key) or {}
    out = {"modelProvider": row.get("modelProvider"), "model": row.get("model")}
    if not four:
        return out
    levels = _levels(parts, row)
    return {
        **out,
        "agentRuntime": RUNTIME,
        "runtimeSelectionLocked": False,
        "thinkingLevel": row.get("thinkingLevel") or "off",
        "thinkingLevels": [{"id": level, "label": level} for level in levels],
    }


def _levels(parts: GatewayParts, row: Mapping[str, object]) -> Sequence[str]:
    """The thinking levels of the session's model."""
    wanted = (row.get("modelProvider"), row.get("model"))
    known = next((r for r in parts.models.rows() if (r.get("provider"), r.get("id")) == wanted), {})
    return THINKING if known.get("reasoning") or not known else THINKING[:1]


def _refuse_level(parts: GatewayParts, key: str, fields: Mapping[str, object]) -> None:
    """Raises InvalidRequest for a thinking level that the session's model does not have."""
    level = fields.get("thinkingLevel")
    if level not in THINKING or "model" in fields:
        return  # the sessions room says what is wrong with it; a new model has its own levels
    row = session_row(parts, key) or model_defaults(parts)
    levels = _levels(parts, row)
    if level not in levels:
        name = f"{row.get('modelProvider')}/{row.get('model')}"
        raise InvalidRequest(
            f'thinkingLevel "{level}" is not supported for {name} (use {"|".join(levels)})'
        )
