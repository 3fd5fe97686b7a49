"""The method table: the only API of the engine, and its shape.

A family in `methods/` makes `Method`s over the ports it needs; the table is what the dispatcher
looks up and what `hello-ok.features` lists. It must not know transports.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from msgspec import Struct

from claw_engine.gateway.peer import Peer
from claw_engine.gateway.validate import Params, check
from claw_engine.protocol.names import Scope

P = TypeVar("P", bound=Params)

Payload: TypeAlias = Mapping[str, object]


class Call(Struct, frozen=True):
    """One request being answered: who asks, and how to send a first of two answers."""

    peer: Peer
    accept: Callable[[Payload], None]


Handler: TypeAlias = Callable[[Call, P], Awaitable[Payload]]


class Method(Struct, frozen=True):
    """`run` checks the parameters, then acts; it returns the payload of the (final) answer.

    Raises InvalidParams, or the ClawError with which the handler refuses.
    """

    name: str
    scope: Scope
    params: type[Params]
    run: Callable[[Call, Payload], Awaitable[Payload]]


def method(name: str, scope: Scope, params: type[P], handler: Handler[P]) -> Method:
    """A method whose handler gets its parameters as a finished `params` object."""

    async def run(call: Call, raw: Payload) -> Payload:
        return await handler(call, check(name, params, raw))

    return Method(name, scope, params, run)


EVENTS = (
    "connect.challenge",
    "agent",
    "chat",
    "exec.approval.requested",
    "exec.approval.resolved",
    "trace",
    "lanes",
    "sessions.changed",
    "notice",
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
