"""The folders that the state directory is made of are the owner's alone, every one of them."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_engine.disk import RealDisk
from claw_engine.storage.foreign_lock import FileLocks
from tests.support.fakes import fake_world


@pytest.fixture
def disk() -> Iterator[RealDisk]:
    made = RealDisk()
    yield made
    made.close()


def modes(root: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*") if path.is_dir()}


def test_folders_above_are_private_too(tmp_path: Path, disk: RealDisk) -> None:
    deep = tmp_path / "agents" / "main" / "sessions"
    disk.mkdir(deep)
    disk.mkdir(deep)
    assert deep.is_dir()
    assert modes(tmp_path) == {0o700}


def test_folders_that_stand_keep_their_mode(tmp_path: Path, disk: RealDisk) -> None:
    (tmp_path / "old").mkdir(0o755)
    disk.mkdir(tmp_path / "old" / "new")
    assert modes(tmp_path) == {0o755, 0o700}


def test_a_file_in_the_way(tmp_path: Path, disk: RealDisk) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        disk.mkdir(tmp_path / "file")


async def test_folders_made_for_a_lock(tmp_path: Path, disk: RealDisk) -> None:
    locks = FileLocks(fake_world(disk=disk))
    hold = await locks.acquire(tmp_path / "agents" / "main" / "sessions" / "sessions.json")
    assert modes(tmp_path) == {0o700}
    await locks.release(hold)
