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


async def test_a_ledger_that_cannot_be_read_says_what_budgets_count(tmp_path: Path) -> None:
    (tmp_path / "usage" / "usage.db").mkdir(parents=True)  # cannot be opened, whoever runs this
    async with engine_on(tmp_path) as engine:
        await engine.warm_up()
        (notice,) = [n for n in engine.notices() if n["code"] == "usage-unwritten"]
        assert "neither be read nor written" in str(notice["title"])
        assert "usage.db" in str(notice["hint"]) and "only what this engine" in str(notice["hint"])
