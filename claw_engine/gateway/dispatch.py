"""From a request to its answer: look up, check scope and parameters, call, word the failure.

The same object serves sockets and the console's own process, so nothing can be done in one that
is refused in the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from claw_engine.errors import ClawError, InvalidRequest
from claw_engine.gateway.dialect import missing_scope
from claw_engine.gateway.errors import MissingScope, UnknownMethod, to_shape
from claw_engine.gateway.peer import Peer
from claw_engine.gateway.table import Call, Method, MethodTable, Payload
from claw_engine.protocol.frames import ErrorShape, RequestFrame, ResponseFrame
from claw_engine.protocol.names import allows

log = logging.getLogger(__name__)

Respond = Callable[[ResponseFrame], None]

_ALWAYS_ALLOWED = "health"


class Dispatcher:
    """Answers requests; many at once, also of one connection."""

    def __init__(self, table: MethodTable) -> None:
        self.table = table

    async def handle(self, peer: Peer, request: RequestFrame, interim: Respond) -> ResponseFrame:
        """The (final) response. A method with two answers sends its first through `interim`.

        Never raises except for cancellation: every failure becomes an error response.
        """

        def accept(payload: Payload) -> None:
            interim(ResponseFrame(request.id, True, payload))

        try:
            method = self._find(peer, request.method)
            payload = await method.run(Call(peer, accept), _params(request))
        except MissingScope as error:
            shape = missing_scope(error.scope.value, peer.identity.protocol)
            return ResponseFrame(request.id, False, error=shape)
        except ClawError as error:
            return ResponseFrame(request.id, False, error=to_shape(error))
        except Exception as error:
            log.exception("method %s failed conn=%s", request.method, peer.conn_id)
            shape = ErrorShape("UNAVAILABLE", f"{request.method} failed: {error!r}")
            return ResponseFrame(request.id, False, error=shape)
        return ResponseFrame(request.id, True, payload)

    def _find(self, peer: Peer, name: str) -> Method:
        if name == "connect":
            raise InvalidRequest("connect is only valid as the first request")
        if peer.identity.confined and name != _ALWAYS_ALLOWED:
            raise InvalidRequest(
                f"{name} is not for processes that an agent run started",
                hint="Ask from a terminal of your own.",
            )
        method = self.table.get(name)
        if method is None:
            raise UnknownMethod(name)
        needed = method.scope_under(peer.identity.protocol)
        if name != _ALWAYS_ALLOWED and not allows(peer.identity.scopes, needed):
            raise MissingScope(needed)
        return method


def _params(request: RequestFrame) -> Mapping[str, object]:
    return request.params if request.params is not None else {}
