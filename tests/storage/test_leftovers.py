"""What a crash leaves beside a file goes at the next start; nothing else does."""

from __future__ import annotations

from pathlib import Path

from claw_engine.storage.leftovers import sweep
from claw_engine.world import RealDisk

KEPT = (
    "sessions.json",
    "sessions.json.4711.0b5f1c9e-2f6e-4a51-9c0f-3d1f3f0a9b11.tmp",  # OpenClaw's
    "notes.tmp",
    "a.jsonl.torn-1796028000000",
    ".4711.0123abcd.tmp",
)


def test_only_our_temporary_files_go(tmp_path: Path) -> None:
    ours = (
        "sessions.json.4711.0123abcd.tmp",
        "a.jsonl.torn-17.9.89abcdef.tmp",
        "sessions.json.0b5f1c9e-2f6e-4a51-9c0f-3d1f3f0a9b11.tmp",
    )
    for name in (*KEPT, *ours):
        (tmp_path / name).touch()
    assert sorted(sweep(RealDisk(), tmp_path)) == sorted(ours)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(KEPT)


def test_a_missing_folder_has_none(tmp_path: Path) -> None:
    assert sweep(RealDisk(), tmp_path / "none") == ()
