"""`exec.approvals.rules` and `.remove`: standing rules are seen, and taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from claw_engine.client.base import ClientError
from tests.support.engines import Operator, engine_on


async def rules(person: Operator) -> Any:
    return (await person.client.call("exec.approvals.rules", {}))["rules"]


async def test_a_rule_is_listed_with_its_last_use_and_taken_back(tmp_path: Path) -> None:
    async with engine_on(tmp_path) as engine, Operator(engine.local_client(strict=True)) as person:
        run = await person.say("run: uname -s")
        await person.decide(await person.request(run), "allow-always")
        await person.ended(run)
        await person.ended(await person.say("run: uname -m"))
        rule = (await rules(person))[0]
        assert rule["pattern"].endswith("/uname") and rule["agentId"] == "main"
        assert rule["lastUsedCommand"] == "uname -m" and rule["lastUsedAt"] > 0
        answer = await person.client.call("exec.approvals.remove", {"id": rule["id"]})
        assert answer == {"ok": True, "rule": rule}
        assert await rules(person) == []
        with pytest.raises(ClientError, match="unknown rule"):
            await person.client.call("exec.approvals.remove", {"id": rule["id"]})
        asked = await person.say("run: uname -r")
        await person.decide(await person.request(asked), "deny")
        await person.ended(asked)
    stored = json.loads((tmp_path / "exec-approvals.json").read_text())
    assert not stored["agents"].get("main", {}).get("allowlist")
