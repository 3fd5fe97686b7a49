"""What a client wants to be told of sessions: `sessions.subscribe`, `sessions.messages.subscribe`
and their ends (protocol digest §2.3). Its events are in session_events.py."""

from __future__ import annotations

from claw_engine.errors import InvalidRequest
from claw_engine.gateway.methods.sessions import ListParams, full_key, session_list
from claw_engine.gateway.peer import approves
from claw_engine.gateway.ports import GatewayParts
from claw_engine.gateway.table import Call, Method, Payload, method
from claw_engine.gateway.validate import NoParams, Params, Text
from claw_engine.protocol.names import Scope

_NOTHING = ListParams()


class MessagesParams(Params, frozen=True, kw_only=True):
    key: Text
    agent_id: Text | None = None
    include_approvals: bool = False


class MessagesEndParams(Params, frozen=True, kw_only=True):
    key: Text
    agent_id: Text | None = None


def methods(parts: GatewayParts) -> tuple[Method, ...]:
    async def subscribe(call: Call, params: ListParams) -> Payload:
        call.peer.follow_sessions(on=True)
        if params == _NOTHING:
            return {"subscribed": True}
        return {"subscribed": True, "list": await session_list(parts, call.peer, params)}

    async def unsubscribe(call: Call, params: NoParams) -> Payload:
        call.peer.follow_sessions(on=False)
        return {"subscribed": False}

    async def messages(call: Call, params: MessagesParams) -> Payload:
        who, key = call.peer.identity, full_key(parts, params.key, params.agent_id)
        if params.include_approvals and not (who.device_id and approves(who)):
            raise InvalidRequest("includeApprovals needs a paired device that shows approvals")
        call.peer.follow_session(key, on=True)
        return {"subscribed": True, "key": key}

    async def messages_end(call: Call, params: MessagesEndParams) -> Payload:
        key = full_key(parts, params.key, params.agent_id)
        call.peer.follow_session(key, on=False)
        return {"subscribed": False, "key": key}

    return (
        method("sessions.subscribe", Scope.READ, ListParams, subscribe),
        method("sessions.unsubscribe", Scope.READ, NoParams, unsubscribe),
        method("sessions.messages.subscribe", Scope.READ, MessagesParams, messages),
        method("sessions.messages.unsubscribe", Scope.READ, MessagesEndParams, messages_end),
    )
