"""What the ledger's troubles say to the operator."""

from __future__ import annotations

from pathlib import Path

from tests.support.engines import Operator, engine_on


async def test_a_damaged_ledger_is_a_notice_that_stands(tmp_path: Path) -> None:
    path = tmp_path / "usage" / "usage.db"
    path.parent.mkdir()
    path.write_bytes(b"no database at all, but long enough" * 10)
    async with (
        engine_on(tmp_path) as engine,
        Operator(engine.local_client(strict=True)) as operator,
    ):
        await engine.warm_up()
        await operator.event("notice", lambda p: p["code"] == "usage-damaged")
        (notice,) = [n for n in engine.notices() if n["code"] == "usage-damaged"]
        assert "budgets began anew" in str(notice["title"])
        assert str(path.with_name("usage.db.damaged-1")) in str(notice["hint"])
        status = await operator.client.call("status")
        assert "usage-damaged" in [row["code"] for row in status["notices"]]
