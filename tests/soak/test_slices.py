"""A seeded two per cent of the long harnesses; `make soak` runs the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.soak import faults, kills, replay
from bench.soak.__main__ import main
from bench.soak.report import Failure
from tests.support.crash_disk import Synced, SyncedFolder

pytestmark = pytest.mark.xdist_group("soak")


def sentences(failures: list[Failure]) -> list[str]:
    return [f"seed {f.seed}, {f.kind}: {f.what}" for f in failures]


async def test_nothing_acknowledged_is_lost_to_a_kill(tmp_path: Path) -> None:
    outcomes = await kills.run([3, 22], jobs=2, keep=tmp_path, kills=4)
    assert sum(o.counts["kills"] for o in outcomes) >= 8
    assert [s for o in outcomes for s in sentences(o.failures)] == []


async def test_nothing_fsynced_is_lost_to_a_power_cut() -> None:
    out = await replay.run(list(range(10)), recordings=1, messages=10)
    assert out.counts["power cuts"] == 10
    assert sentences(out.failures) == []


async def test_the_power_harness_sees_an_engine_that_does_not_fsync() -> None:
    recording = await replay.record(1, 6)
    recording.steps = [s for s in recording.steps if not isinstance(s, Synced | SyncedFolder)]
    failures = [f for seed in range(6) for f in await replay.draw(recording, seed)]
    assert any("was acknowledged and is in no transcript" in f.what for f in failures)


@pytest.mark.parametrize(
    "wanted",
    [[(0, 2), (4, 7), (2, 13)], [(1, 18), (1, 20), (1, 32)]],
)
async def test_a_bad_disk_loses_nothing_and_is_told(wanted: list[tuple[int, int]]) -> None:
    out = await faults.run(wanted)
    assert out.counts["bad disks"] == len(wanted)
    assert out.counts["writes refused"] > 0
    assert sentences(out.failures) == []


def test_the_program_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tmp_path / "soak.json"
    code = main(["--only", "power", "--share", "0.002", "--out", str(result)])
    assert code == 0
    assert '"power cuts": 1' in result.read_text()
    assert "0 promises broken" in capsys.readouterr().err
