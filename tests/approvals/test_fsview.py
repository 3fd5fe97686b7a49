"""How files are seen: who could write them, and what identifies them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claw_engine.approvals.fsview import RealFs
from tests.approvals.conftest import Box

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may enter (pytest's own belongs to one user)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_ordinary_user(work: Callable[[], dict[str, bool]]) -> dict[str, bool]:
    """The result of `work` for a user who is not root."""
    if os.getuid() != 0:
        return work()
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads: child only stats
        child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    result: dict[str, bool] = json.loads(text)
    return result


def writable(path: Path) -> bool:
    fs = RealFs()
    found = fs.file(str(path))
    assert found is not None
    return fs.writable(found)


def test_a_file_under_a_folder_that_anyone_may_write_counts_as_writable(open_folder: Path) -> None:
    """The temporary folder is sticky, yet who may create names there may race for this one."""
    file = open_folder / "tool"
    file.write_text("x")
    assert as_ordinary_user(lambda: {"x": writable(file)}) == {"x": True}


def test_system_programs_are_not_writable_for_anyone() -> None:
    tool = Path(shutil.which("uname") or "/usr/bin/uname")
    assert as_ordinary_user(lambda: {"x": writable(tool)}) == {"x": False}
    assert not writable(tool)


def test_for_root_only_the_systems_own_folders_count_as_safe(box: Box) -> None:
    fs = RealFs(uid=0)
    tool = fs.file(str(box.program("bin/tool")))
    uname = fs.file("/usr/bin/uname")
    assert tool is not None
    assert uname is not None
    assert fs.writable(tool)
    assert not fs.writable(uname)


def test_what_is_no_regular_file_is_none(box: Box) -> None:
    (box.root / "loop").symlink_to("loop")
    os.mkfifo(box.root / "pipe")
    for path in (box.root, box.root / "missing", box.root / "loop", box.root / "pipe", "/dev/null"):
        assert box.fs.file(str(path)) is None
    assert box.fs.file("a\0b") is None
    assert box.fs.directory(str(box.root / "missing")) is None


def test_a_file_in_a_known_folder_is_the_same_file(box: Box) -> None:
    box.program("bin/tool")
    (box.bin / "link").symlink_to("tool")
    (box.bin / "folder").mkdir()
    os.mkfifo(box.bin / "pipe")
    for name in ("tool", "link", "folder", "pipe", "missing", "..", ".", "a\0b"):
        assert box.fs.file_in(str(box.bin), name) == box.fs.file(f"{box.bin}/{name}"), name
    assert box.fs.file_in("/", "bin") is None


def test_a_rewrite_within_one_clock_tick_changes_the_hash(box: Box) -> None:
    path = box.program("bin/tool", "one")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    first = box.hash(path)
    path.write_text("two")
    os.utime(path, ns=times)
    assert box.hash(path) != first


def test_a_pipe_in_the_place_of_a_file_does_not_block(box: Box) -> None:
    path = box.program("bin/tool")
    seen = box.fs.file(str(path))
    assert seen is not None
    path.unlink()
    os.mkfifo(path)
    assert box.fs.sha256(seen) is None


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_that_says_it_is_empty_is_not_read(box: Box) -> None:
    seen = box.fs.file("/proc/self/status")
    assert seen is not None
    assert box.fs.sha256(seen) == hashlib.sha256(b"").hexdigest()


def test_the_decision_core_loads_no_pydantic_and_no_screen() -> None:
    code = (
        "import sys, claw_engine.approvals.evaluate, claw_engine.approvals.broker, "
        "claw_engine.approvals.store;"
        "print([m for m in ('pydantic', 'textual', 'rich', 'httpx2') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
