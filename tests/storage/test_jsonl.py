from __future__ import annotations

import errno
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.storage.errors import StateDiskError, StateDiskFull
from claw_engine.storage.jsonl import (
    LineFile,
    find_torn,
    iterate,
    parse_line,
    repair,
    tail,
)
from claw_engine.storage.text import to_line
from claw_engine.world import RealDisk
from tests.storage.faults import HalfLineDisk

NOW = 1_796_028_000_000
GOOD = to_line({"n": 1, "text": "first é"}) + to_line({"n": 2, "text": 'with "}" inside'})
LAST = to_line({"n": 3, "nested": {"a": [1, {"b": "}"}]}, "text": "third 漢"})


@pytest.fixture
def disk() -> RealDisk:
    return RealDisk()


@pytest.mark.parametrize("cut", range(len(LAST) + 1))
def test_a_crash_at_any_byte_of_the_last_record_leaves_whole_lines(
    tmp_path: Path, disk: RealDisk, cut: int
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + LAST[:cut])
    mended = repair(disk, path, NOW)
    after = path.read_bytes()
    if cut >= len(LAST) - 1:  # whole, at most its newline is missing
        assert after == GOOD + LAST
    else:
        assert after == GOOD
    if 0 < cut < len(LAST) - 1:
        assert mended is not None
        assert mended.backup is not None
        assert mended.backup.read_bytes() == LAST[:cut]
        assert str(cut) in mended.sentence()
    assert repair(disk, path, NOW) is None


def test_nul_bytes_of_a_power_loss_are_cut_and_kept_aside(tmp_path: Path, disk: RealDisk) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + b"\0" * 4096)
    mended = repair(disk, path, NOW)
    assert path.read_bytes() == GOOD
    assert mended is not None
    assert mended.backup is not None
    assert mended.backup.read_bytes() == b"\0" * 4096


def test_a_huge_torn_line_is_found_beyond_the_first_block(tmp_path: Path, disk: RealDisk) -> None:
    path = tmp_path / "a.jsonl"
    torn = b'{"text":"' + b"x" * 700_000
    path.write_bytes(GOOD + torn)
    mended = repair(disk, path, NOW)
    assert mended is not None
    assert (mended.offset, mended.size) == (len(GOOD), len(torn))
    assert path.read_bytes() == GOOD


def test_a_missing_or_sound_or_empty_file_needs_nothing(tmp_path: Path, disk: RealDisk) -> None:
    assert repair(disk, tmp_path / "none.jsonl", NOW) is None
    for name, data in (("sound.jsonl", GOOD), ("empty.jsonl", b"")):
        (tmp_path / name).write_bytes(data)
        assert repair(disk, tmp_path / name, NOW) is None
        assert (tmp_path / name).read_bytes() == data


@given(st.binary(max_size=60))
def test_find_torn_points_behind_the_last_newline(data: bytes) -> None:
    torn = find_torn(data)
    if torn is None:
        assert data == b"" or data.endswith(b"\n")
    else:
        assert torn.offset + torn.size == len(data)
        assert b"\n" not in data[torn.offset :]
        assert torn.offset == 0 or data[torn.offset - 1 : torn.offset] == b"\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"a":1}', {"a": 1}),
        (b'\0\0\0{"a":1}', {"a": 1}),
        (b'{"a":1}\r', {"a": 1}),
        (b"\0\0\0", "only NUL bytes"),
        (b"  ", "empty line"),
        (b"[1]", "not a JSON object"),
        (b'{"a":', "not JSON (JSONDecodeError)"),
        (b'{"a":"\xff"}', "not JSON (UnicodeDecodeError)"),
        (b"[" * 100_000, "not JSON (RecursionError)"),
    ],
)
def test_a_line_is_an_object_or_says_why_not(line: bytes, expected: object) -> None:
    assert parse_line(line) == expected


@given(
    st.lists(st.integers(0, 9).map(lambda n: b'{"n":%d}' % n), max_size=30),
    st.integers(0, 40),
    st.sampled_from([b"", b'{"n":']),
)
def test_tail_is_the_end_of_iterate(lines: list[bytes], count: int, torn: bytes) -> None:
    disk = RealDisk()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines) + torn)
        whole = list(iterate(disk, path, chunk=7))
        assert [line for _, line in whole] == lines
        data = path.read_bytes()
        assert all(data[at : at + len(line)] == line for at, line in whole)
        assert tail(disk, path, count) == (lines[-count:] if count else [])


def test_tail_of_a_large_file_reads_its_end_only(tmp_path: Path) -> None:
    class Counting(RealDisk):
        read = 0

        def read_from(self, path: Path, offset: int, size: int = -1) -> bytes:
            data = super().read_from(path, offset, size)
            self.read += len(data)
            return data

    disk = Counting()
    path = tmp_path / "big.jsonl"
    path.write_bytes(b"".join(to_line({"n": n, "pad": "x" * 90}) for n in range(50_000)))
    assert [json.loads(line)["n"] for line in tail(disk, path, 3)] == [49_997, 49_998, 49_999]
    assert disk.read <= 64 * 1024


@pytest.mark.parametrize("short", [0, 1, 5])
@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, StateDiskFull), (errno.EIO, StateDiskError)]
)
def test_a_failed_append_leaves_no_half_line(
    tmp_path: Path, short: int, number: int, kind: type[StateDiskError]
) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "a.jsonl"
    lines = LineFile(disk, path)
    lines.append(GOOD, fsync=True)
    disk.broken, disk.short, disk.error = True, short, number
    with pytest.raises(kind) as caught:
        lines.append(LAST, fsync=True)
    assert caught.value.path == path
    assert caught.value.retryable
    assert str(path) in caught.value.title
    assert caught.value.hint
    assert path.read_bytes() == GOOD
    disk.broken = False
    assert lines.append(LAST, fsync=True) == len(GOOD + LAST)
    assert path.read_bytes() == GOOD + LAST


def test_a_cut_that_failed_is_made_up_for(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "a.jsonl"
    lines = LineFile(disk, path)
    lines.append(GOOD, fsync=False)
    disk.broken, disk.short, disk.uncuttable = True, 5, True
    with pytest.raises(StateDiskFull):
        lines.append(LAST, fsync=False)
    assert path.read_bytes() == GOOD + LAST[:5]
    with pytest.raises(StateDiskError):
        lines.append(LAST, fsync=False)
    disk.broken = disk.uncuttable = False
    lines.append(LAST, fsync=False)
    assert path.read_bytes() == GOOD + LAST


def test_a_first_append_that_fails_leaves_an_empty_file(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "a.jsonl"
    disk.broken, disk.short = True, 3
    with pytest.raises(StateDiskFull):
        LineFile(disk, path).append(LAST, fsync=True)
    assert path.read_bytes() == b""


def test_a_repair_that_cannot_save_the_cut_bytes_cuts_nothing(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + LAST[:9])
    disk.broken = True
    with pytest.raises(StateDiskFull):
        repair(disk, path, NOW)
    assert path.read_bytes() == GOOD + LAST[:9]


def test_reading_what_is_not_there_says_which_file(tmp_path: Path, disk: RealDisk) -> None:
    missing = tmp_path / "none.jsonl"
    for read in (lambda: list(iterate(disk, missing)), lambda: tail(disk, missing, 3)):
        with pytest.raises(StateDiskError) as caught:
            read()
        assert str(missing) in caught.value.title


def test_a_failed_first_append_never_cuts_another_writers_lines(tmp_path: Path) -> None:
    disk = HalfLineDisk()
    path = tmp_path / "a.jsonl"
    lines = LineFile(disk, path)
    lines.append(GOOD, fsync=False)
    with path.open("ab") as file:
        file.write(LAST)
    disk.broken, disk.short = True, 4
    with pytest.raises(StateDiskFull):
        lines.append(LAST, fsync=False)
    assert path.read_bytes() == GOOD + LAST
