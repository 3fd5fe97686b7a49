"""No method without its scope: the whole table, for every scope, at both protocols."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from claw_engine.engine import Engine
from claw_engine.gateway.outbox import Outbox
from claw_engine.gateway.peer import Identity, Peer
from claw_engine.protocol.frames import RequestFrame, ResponseFrame
from claw_engine.protocol.names import Scope, allows
from tests.support.engines import engine_on

NEEDS: dict[str, Scope] = {
    "chat.send": Scope.WRITE, "chat.history": Scope.READ, "chat.abort": Scope.WRITE,
    "sessions.list": Scope.READ, "sessions.delete": Scope.ADMIN, "config.get": Scope.READ,
    "exec.approval.resolve": Scope.APPROVALS, "device.pair.approve": Scope.PAIRING,
    "device.token.rotate": Scope.PAIRING, "engine.stop": Scope.ADMIN,
    "permission.set": Scope.ADMIN, "system-presence": Scope.READ, "agent": Scope.WRITE,
}  # fmt: skip
"""What the digest says of methods whose scope must never slip (§1.7)."""


async def ask(engine: Engine, scopes: frozenset[Scope], method: str, protocol: int) -> str:
    """The refusal's message, or "let through"."""
    identity = Identity("test", "test", scopes=scopes, protocol=protocol)
    peer = Peer("c", identity, Outbox(lambda: None))
    # A parameter that no method takes: whoever gets as far as that was let through.
    request = RequestFrame("1", method, {"no such parameter \0": 1})
    answer = await engine.gateway.dispatcher.handle(peer, request, lambda frame: None)
    assert isinstance(answer, ResponseFrame)
    if answer.error is None:
        return "let through"
    if answer.error.message.startswith("missing scope: "):
        assert answer.error.code == ("FORBIDDEN" if protocol == 4 else "INVALID_REQUEST")
        return answer.error.message
    return "let through"


@pytest.mark.parametrize("protocol", [3, 4])
async def test_every_method_asks_for_its_scope(tmp_path: Path, protocol: int) -> None:
    sets = [frozenset(c) for n in (0, 1, 2) for c in combinations(Scope, n)]
    async with engine_on(tmp_path) as engine:
        table = engine.gateway.dispatcher.table
        for name in table.names:
            method = table.get(name)
            assert method is not None
            needed = method.scope_under(protocol)
            for scopes in sets:
                let = await ask(engine, scopes, name, protocol) == "let through"
                assert let == (name == "health" or allows(scopes, needed)), (name, scopes)
        for name, needed in NEEDS.items():
            found = table.get(name)
            assert found is not None and found.scope is needed


async def test_what_is_announced_exists_and_what_exists_is_announced(tmp_path: Path) -> None:
    async with engine_on(tmp_path) as engine:
        table = engine.gateway.dispatcher.table
        features = table.features()
        assert features["methods"] == table.names
        assert len(set(features["events"])) == len(features["events"])
