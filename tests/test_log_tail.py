"""Reading the log in pieces, both ways: every line once, whatever the sizes of lines and pieces."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.log_tail import LogTail
from claw_engine.world import RealDisk

DAYS = st.lists(st.lists(st.text("abc é漢", max_size=30), max_size=12), min_size=1, max_size=3)


def _lines(raw: object) -> list[str]:
    assert isinstance(raw, list)
    return [str(line) for line in raw]


def tail_of(folder: Path, days: Sequence[Sequence[str]]) -> LogTail:
    for number, lines in enumerate(days, 1):
        path = folder / f"claw-2026-11-{number:02d}.log"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return LogTail(RealDisk(), folder)


@given(days=DAYS, limit=st.integers(1, 6), room=st.integers(130, 400))
def test_pages_both_ways_give_every_line_once(days: list[list[str]], limit: int, room: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        tail = tail_of(Path(name), days)
        last = tail.read(None, limit, room)
        wanted = [line for day in days for line in day]
        got, file, at = _lines(last["lines"]), str(last["file"]), last["start"]
        while True:
            assert isinstance(at, int)
            page = tail.read_page(file, at, True, limit, room)
            if not page["lines"] and page["file"] == file:
                break
            got = _lines(page["lines"]) + got
            file, at = str(page["file"]), page["start"]
        assert got == wanted
        assert (Path(file).name, at) == ("claw-2026-11-01.log", 0)
        again: list[str] = []
        while True:
            page = tail.read_page(file, at, False, limit, room)
            if not page["lines"] and page["file"] == file:
                break
            again += _lines(page["lines"])
            file = str(page["file"])
            assert isinstance(page["end"], int)
            at = page["end"]
        assert again == wanted and page["newest"] is True


def test_a_line_longer_than_a_piece_is_no_wall(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, [["first", "x" * 1000, "last"]])
    parts, file, at = [], "claw-2026-11-01.log", 1012
    while at:
        page = tail.read_page(file, at, True, 10, 200)
        parts[:0] = _lines(page["lines"])
        assert isinstance(page["start"], int) and page["start"] < at
        at = page["start"]
    assert parts[0] == "first" and parts[-1] == "last"
    assert "".join(parts[1:-1]) == "x" * 1000
    ahead, at = [], 0
    while at < 1012:
        page = tail.read_page(file, at, False, 10, 200)
        ahead += _lines(page["lines"])
        assert isinstance(page["end"], int) and page["end"] > at
        at = page["end"]
    assert "".join(ahead) == "first" + "x" * 1000 + "last"


def test_only_files_of_the_log_are_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no\n")
    tail = tail_of(tmp_path, [["a"]])
    for name in ("secret", "../secret", "/etc/passwd", "claw-2026-11-09.log"):
        with pytest.raises(FileNotFoundError):
            tail.read_page(name, 0, False)


def test_a_line_that_is_being_written_waits(tmp_path: Path) -> None:
    tail = tail_of(tmp_path, [["a"]])
    path = tmp_path / "claw-2026-11-01.log"
    with path.open("a") as file:
        file.write("half")
    page = tail.read_page(path.name, 2, False)
    assert page["lines"] == [] and page["end"] == 2
    with path.open("a") as file:
        file.write(" whole\n")
    assert tail.read_page(path.name, 2, False)["lines"] == ["half whole"]
