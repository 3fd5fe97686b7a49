from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claw_engine.storage.errors import LockUnsupported, StateDiskError
from claw_engine.storage.locks import HeldBy, Lock, acquire, foreign_locks, holder

INFO = {"startedAt": 1, "host": "box", "door": "claw.sock"}

HOLD = """
import sys
from pathlib import Path
from claw_engine.storage.locks import acquire
lock = acquire(Path(sys.argv[1]), {"host": "other"})
print(type(lock).__name__, flush=True)
sys.stdin.read()
"""


def test_one_holder_and_the_second_learns_who(tmp_path: Path) -> None:
    path = tmp_path / "gateway.lock"
    first = acquire(path, INFO)
    assert isinstance(first, Lock)
    assert path.stat().st_mode & 0o777 == 0o600
    second = acquire(path, INFO)
    assert second == HeldBy(os.getpid(), {"pid": os.getpid(), **INFO})
    first.describe({**INFO, "door": "/run/user/0/claw.sock"})
    held = holder(path)
    assert held is not None
    assert held.info["door"] == "/run/user/0/claw.sock"
    first.release()
    first.release()
    assert holder(path) is None
    third = acquire(path, INFO)
    assert isinstance(third, Lock)
    third.release()


def test_a_killed_holder_frees_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "gateway.lock"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"Lock\n"
        held = acquire(path, INFO)
        assert isinstance(held, HeldBy)
        assert held.pid == child.pid
        assert held.info["host"] == "other"
        child.kill()
        child.wait()
    mine = acquire(path, INFO)  # its description is still in the file, its lock is gone
    assert isinstance(mine, Lock)
    mine.release()


def test_a_holder_whose_pid_means_nothing_here_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "gateway.lock"
    lock = acquire(path, INFO)
    assert isinstance(lock, Lock)
    path.write_text(json.dumps({"pid": 2**22 + 1, "host": "container"}))  # beyond any pid
    held = acquire(path, INFO)
    assert held == HeldBy(2**22 + 1, {"pid": 2**22 + 1, "host": "container"})
    assert holder(path) is None
    lock.release()


def test_the_lock_follows_a_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "gateway.lock"
    old = acquire(path, INFO)
    assert isinstance(old, Lock)
    path.unlink()
    new = acquire(path, INFO)
    assert isinstance(new, Lock)
    old.release()
    assert isinstance(acquire(path, INFO), HeldBy)
    new.release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_flock_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def flock(fd: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    # The kernel call itself is the outside world here: no mount of this machine refuses it.
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LockUnsupported) as caught:
        acquire(tmp_path / "gateway.lock", INFO)
    assert os.strerror(number) in caught.value.title
    assert "--state-dir" in caught.value.hint


def test_a_mount_that_grants_every_lock_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda fd, how: None)
    with pytest.raises(LockUnsupported, match="second lock"):
        acquire(tmp_path / "gateway.lock", INFO)


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "gateway.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateDiskError):
        acquire(tmp_path / "gateway.lock", INFO)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"pid":"x"}', b'{"pid":-4}', b"\xff"])
def test_an_unreadable_description_names_nobody(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gateway.lock"
    path.write_bytes(content)
    assert holder(path) is None


def test_foreign_locks_are_those_whose_owner_lives(tmp_path: Path) -> None:
    now = 1_796_028_000_000  # 2026-11-30T08:40:00Z
    folder = tmp_path / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)

    def lock(name: str, value: object) -> Path:
        (folder / name).write_text(json.dumps(value))
        return folder / name

    live = lock("a.jsonl.lock", {"pid": 77, "createdAt": "2026-11-30T08:39:00.000Z"})
    store = lock("sessions.json.lock", {"pid": 77, "createdAt": "2026-11-30T08:20:00.000Z"})
    lock("dead.jsonl.lock", {"pid": 78, "createdAt": "2026-11-30T08:39:00.000Z"})
    lock("stale.jsonl.lock", {"pid": 77, "createdAt": "2026-11-30T08:09:59.000Z"})
    lock("nobody.jsonl.lock", {"createdAt": "2026-11-30T08:39:00.000Z"})
    undated = lock("undated.jsonl.lock", {"pid": 77, "createdAt": "soon"})
    os.utime(undated, (now / 1000 - 60, now / 1000 - 60))
    old = lock("old.jsonl.lock", {"pid": 77})
    os.utime(old, (now / 1000 - 3600, now / 1000 - 3600))
    (folder / "torn.jsonl.lock").write_text("{")
    found = foreign_locks(tmp_path, now, alive=lambda pid: pid == 77)
    assert {(f.path, f.pid) for f in found} == {(live, 77), (store, 77), (undated, 77)}
    assert foreign_locks(tmp_path / "none", now) == []
