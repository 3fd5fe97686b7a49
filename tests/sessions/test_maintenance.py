from __future__ import annotations

import pytest

from claw_engine.config.sections.session import Maintenance
from claw_engine.sessions.archive import (
    Archive,
    archive_path,
    is_draft,
    read_archive,
    repair_ms,
    stamp,
)
from claw_engine.sessions.maintenance import DAY_MS, Limits, duration_ms, limits_of, size_bytes
from claw_engine.shapes import read
from tests.sessions.support import GOLDEN
from tests.support.fakes import START_MS

MB = 1 << 20
HALF = DAY_MS // 2


@pytest.mark.parametrize(
    ("raw", "limits"),
    [
        ({}, Limits()),
        ({"mode": "enforce", "pruneAfter": "12h"}, Limits(True, HALF, reset_retention=HALF)),
        ({"pruneAfter": 7}, Limits(prune_after=7 * DAY_MS, reset_retention=7 * DAY_MS)),
        ({"pruneDays": 3}, Limits(prune_after=3 * DAY_MS, reset_retention=3 * DAY_MS)),
        ({"resetArchiveRetention": False}, Limits(reset_retention=None)),
        ({"resetArchiveRetention": "2d"}, Limits(reset_retention=2 * DAY_MS)),
        ({"maxDiskBytes": "10mb"}, Limits(max_disk=10 * MB, high_water=8 * MB)),
        ({"maxDiskBytes": 1000, "highWaterBytes": 5000}, Limits(max_disk=1000, high_water=800)),
        ({"rotateBytes": "nonsense", "maxEntries": 7}, Limits(max_entries=7)),
    ],
)  # fmt: skip
def test_limits_are_read_from_the_settings(raw: dict[str, object], limits: Limits) -> None:
    assert limits_of(read(Maintenance, raw)) == limits


@pytest.mark.parametrize(
    ("text", "ms"),
    [("30d", 30 * DAY_MS), ("1.5h", 5_400_000), ("90", 90 * DAY_MS), ("500ms", 500), ("x", None),
     ("", None), (None, None), ("2 w", 14 * DAY_MS)],
)  # fmt: skip
def test_durations(text: str | None, ms: int | None) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "size"),
    [("10mb", 10 * MB), ("10MiB", 10 * MB), ("512k", 512 << 10), ("7", 7), ("7b", 7), ("1x", None)],
)
def test_sizes(text: str, size: int | None) -> None:
    assert size_bytes(text) == size


def test_archives_are_named_as_openclaw_does() -> None:
    path = GOLDEN / "a.jsonl"
    made = archive_path(path, "reset", START_MS)
    assert made.name == "a.jsonl.reset.2026-11-30T08-40-00.000Z"
    for number in (0, 2):
        name = archive_path(path, "deleted", START_MS, number).name
        assert read_archive(name) == Archive("a.jsonl", "deleted", START_MS)
    captured = [a for p in GOLDEN.rglob("*Z") if (a := read_archive(p.name)) is not None]
    assert {a.reason for a in captured} == {"reset", "deleted", "bak"}


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "a.jsonl", "a.jsonl.reset.txt", "a.jsonl.reset.2026-13-30T08-40-00.000Z",
     "a.jsonl.gone.2026-11-30T08-40-00.000Z", "a.jsonl.bak", "sessions.json", "x.tmp",
     "sessions.json.tmp", "jsonl.lock", "a.jsonl.bak-1", "sessions.json.bak.x"],
)  # fmt: skip
def test_other_files_are_nothing_of_ours(name: str) -> None:
    assert read_archive(name) is None
    assert repair_ms(name) is None
    assert not is_draft(name)


def test_leftovers_of_repairs_and_writers_are_known() -> None:
    assert repair_ms("a.jsonl.torn-17") == 17
    assert repair_ms("a.jsonl.bak-4-17") == 17
    assert repair_ms("sessions.json.bak.17") == 17
    assert repair_ms(f"sessions.json.broken-{stamp(START_MS)}-2") == START_MS
    for name in (
        "sessions.json.1.0f0f0f0f.tmp",
        "sessions.json.77.00000000-0000-4000-8000-00000000000a.tmp",
        "sessions.json.00000000-0000-4000-8000-00000000000a.tmp",
        "a.jsonl.12.abcdef01.tmp",
        "a.jsonl.lock.12.abcdef01.tmp",
        "a.jsonl.lock.12.stale",
    ):
        assert is_draft(name), name
