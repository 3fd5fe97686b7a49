from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.usage.calibration import LEAST, MOST, Calibration
from tests.support.fakes import FaultyDisk, fake_world


def fresh(root: Path = Path("/nowhere")) -> Calibration:
    return Calibration(fake_world(), root / "usage" / "calibration.json")


def test_a_model_that_nobody_measured_is_not_drawn() -> None:
    assert fresh().ratio("a/b") == 1.0
    assert not fresh().measured("a/b")


def test_the_ratio_follows_the_provider_and_each_model_has_its_own() -> None:
    c = fresh()
    for _ in range(3):
        c.learn("a/dense", 10_000, 13_000)
        c.learn("a/thin", 10_000, 9_000)
    assert c.ratio("a/dense") == 1.3
    assert c.ratio("a/thin") == 0.9
    assert c.measured("a/dense")


def test_one_odd_call_moves_nothing() -> None:
    c = fresh()
    for _ in range(4):
        c.learn("a/b", 10_000, 11_000)
    assert not c.learn("a/b", 10_000, 40_000)  # a provider that adds images, say
    assert c.ratio("a/b") == 1.1


def test_small_calls_and_empty_counts_say_nothing() -> None:
    c = fresh()
    assert not c.learn("a/b", 20, 40)
    assert not c.learn("a/b", 10_000, 0)
    assert c.ratio("a/b") == 1.0


def test_it_moves_in_steps_so_that_what_was_worked_out_stays() -> None:
    c = fresh()
    assert c.learn("a/b", 10_000, 11_000)
    assert not any(c.learn("a/b", 10_000, 11_000 + n) for n in range(0, 150, 10))
    assert c.ratio("a/b") == 1.1


@given(st.lists(st.tuples(st.integers(1, 10**7), st.integers(0, 10**8)), max_size=40))
def test_it_is_always_within_its_bounds(calls: list[tuple[int, int]]) -> None:
    c = fresh()
    for estimated, counted in calls:
        c.learn("a/b", estimated, counted)
        assert LEAST <= c.ratio("a/b") <= MOST


async def test_it_outlives_the_engine(tmp_path: Path) -> None:
    first = fresh(tmp_path)
    first.learn("a/b", 10_000, 13_000)
    await first.save()
    second = fresh(tmp_path)
    await second.load()
    assert second.ratio("a/b") == 1.3


@pytest.mark.parametrize("content", [b"", b"{", b'{"a/b": ["x"]}', b'{"a/b": [7, -1]}', b"[]"])
async def test_a_damaged_file_is_learnt_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "usage").mkdir()
    (tmp_path / "usage" / "calibration.json").write_bytes(content)
    c = fresh(tmp_path)
    await c.load()
    assert c.ratio("a/b") == 1.0


async def test_a_full_disk_costs_only_the_memory(tmp_path: Path) -> None:
    disk = FaultyDisk()
    disk.fail_next()
    c = Calibration(fake_world(disk=disk), tmp_path / "usage" / "calibration.json")
    c.learn("a/b", 10_000, 13_000)
    await c.save()
    assert c.ratio("a/b") == 1.3
