"""The method table: the only API of the engine, and its shape.

A family in `methods/` makes `Method`s over the ports it needs; the table is what the dispatcher
looks up and what `hello-ok.features` lists. It must not know transports.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from msgspec import Struct

from claw_engine.gateway.peer import Peer
from claw_engine.gateway.validate import Params, check
from claw_engine.protocol.names import Scope

P = TypeVar("P", bound=Params)

Payload: TypeAlias = Mapping[str, object]
Answer: TypeAlias = Payload | Sequence[Payload]
"""What a method answers: an object; a few of OpenClaw's answer a list."""


class Call(Struct, frozen=True):
    """One request being answered: who asks, and how to send a first of two answers."""

    peer: Peer
    accept: Callable[[Payload], None]


Handler: TypeAlias = Callable[[Call, P], Awaitable[Answer]]


class Method(Struct, frozen=True):
    """`run` checks the parameters, then acts; it returns the payload of the (final) answer.

    Raises InvalidParams, or the ClawError with which the handler refuses. `scope4` is the scope
    under protocol 4 where it differs.
    """

    name: str
    scope: Scope
    params: type[Params]
    run: Callable[[Call, Payload], Awaitable[Answer]]
    scope4: Scope | None = None

    def scope_under(self, protocol: int) -> Scope:
        return self.scope4 if protocol >= 4 and self.scope4 is not None else self.scope


def method(
    name: str, scope: Scope, params: type[P], handler: Handler[P], *, scope4: Scope | None = None
) -> Method:
    """A method whose handler gets its parameters as a finished `params` object."""

    async def run(call: Call, raw: Payload) -> Answer:
        return await handler(call, check(name, params, raw))

    return Method(name, scope, params, run, scope4)


EVENTS = (
    "connect.challenge",
    "agent",
    "chat",
    "exec.approval.requested",
    "exec.approval.resolved",
    "exec.approval.ran",
    "exec.approvals.changed",
    "trace",
    "lanes",
    "sessions.changed",
    "session.message",
    "notice",
    "health",
    "presence",
    "device.pair.requested",
    "device.pair.resolved",
    "tick",
    "shutdown",
    "connection.closing",
)
"""Every event a client may see."""


class MethodTable:
    """Methods by name. Raises ValueError when two share one."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._methods: dict[str, Method] = {}
        for method in methods:
            if method.name in self._methods:
                raise ValueError(f"two methods are called {method.name}")
            self._methods[method.name] = method

    def get(self, name: str) -> Method | None:
        return self._methods.get(name)

    @property
    def names(self) -> list[str]:
        return list(self._methods)

    def features(self) -> dict[str, list[str]]:
        """`hello-ok.features`: exactly what exists."""
        return {"methods": self.names, "events": list(EVENTS)}
