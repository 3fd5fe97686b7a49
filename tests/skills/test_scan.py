"""Which files are found, in which order, and how often they are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claw_engine.config.sections.skills import SkillsLimits, SkillsSettings
from claw_engine.skills.gates import Machine, judged
from claw_engine.skills.model import Source
from claw_engine.skills.roots import Root
from claw_engine.skills.scan import Scanner
from claw_engine.world import RealDisk

LIMITS = SkillsLimits()
ALL_HERE = Machine(lambda name: True, {}, {}, "linux")


class CountingDisk(RealDisk):
    reads = 0

    def read_from(self, path: Path, offset: int, size: int = -1) -> bytes:
        type(self).reads += 1
        return super().read_from(path, offset, size)


def put(folder: Path, name: str = "", description: str = "does it") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_text(f"---\nname: {name or folder.name}\ndescription: {description}\n---\n")
    return file


def scan(*roots: Path, limits: SkillsLimits = LIMITS, source: Source = Source.WORKSPACE):  # type: ignore[no-untyped-def]  # the tuple of Found
    return Scanner(RealDisk()).scan([Root(source, str(root)) for root in roots], limits)


def test_folders_by_name_and_groups_below(tmp_path: Path) -> None:
    for name in ("b", "a", ".hidden", "node_modules", "group/inner", "group/deep/c"):
        put(tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert [found.name for found in scan(tmp_path)] == ["a", "b", "inner", "c"]
    put(tmp_path / "1/2/3/4/5/six")
    put(tmp_path / "1/2/3/4/5/6/seven")
    assert "six" in [found.name for found in scan(tmp_path)]
    assert "seven" not in [found.name for found in scan(tmp_path)]


def test_a_root_may_be_one_skill_or_hold_a_folder_of_them(tmp_path: Path) -> None:
    put(tmp_path / "one")
    assert [found.name for found in scan(tmp_path / "one")] == ["one"]
    put(tmp_path / "repo/skills/x")
    put(tmp_path / "repo/other")
    assert [found.name for found in scan(tmp_path / "repo")] == ["x"]
    assert scan(tmp_path / "gone") == ()


def test_a_link_stays_inside_its_root(tmp_path: Path) -> None:
    """SK-01: a folder that is a link out of its root is refused, and listed with the reason."""
    outside = tmp_path / "outside"
    put(outside / "x")
    root = tmp_path / "root"
    put(root / "real")
    (root / "alias").symlink_to(root / "real")
    (root / "out").symlink_to(outside / "x")
    (root / "file").mkdir()
    (root / "file/SKILL.md").symlink_to(outside / "x/SKILL.md")
    (root / "group").symlink_to(outside)
    (root / "dangling").mkdir()
    (root / "dangling/SKILL.md").symlink_to(root / "none")
    (root / "loop").symlink_to(root)
    found = {one.folder.rpartition("/")[2]: one for one in scan(root)}
    assert found["real"].front is not None and found["alias"].front is not None
    assert found["out"].front is None and "leads out" in found["out"].problem
    assert "leads out" in found["file"].problem
    assert "cannot be read" in found["dangling"].problem
    assert "group" not in found and "x" not in found


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo/SKILL.md")
    (tmp_path / "folder/SKILL.md").mkdir(parents=True)
    put(tmp_path / "big").write_bytes(b"---\nname: big\ndescription: x\n---\n" + b"x" * 2_000_000)
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary/SKILL.md").write_bytes(b"---\nname: \xff\xfe\0\ndescription: x\n---\n")
    reasons = {found.name: found.problem for found in scan(tmp_path)}
    assert reasons["fifo"] == reasons["folder"] == "SKILL.md is not a regular file"
    assert reasons["big"] == "SKILL.md has 2,000,033 bytes, more than 256,000"
    assert reasons["binary"] == "its head is not text"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    put(tmp_path / "a").chmod(0)
    (found,) = scan(tmp_path)
    assert "cannot be read" in found.problem


def test_each_file_is_read_once_until_it_is_another(tmp_path: Path) -> None:
    for name in "abc":
        put(tmp_path / name)
    disk = CountingDisk()
    scanner = Scanner(disk)
    roots = [Root(Source.WORKSPACE, str(tmp_path))]
    first = scanner.scan(roots, LIMITS)
    assert CountingDisk.reads == 3
    again = scanner.scan(roots, LIMITS)
    assert CountingDisk.reads == 3
    assert all(a is b for a, b in zip(first, again, strict=True))
    put(tmp_path / "b", description="does more")
    third = scanner.scan(roots, LIMITS)
    assert CountingDisk.reads == 4
    assert [a is b for a, b in zip(first, third, strict=True)] == [True, False, True]


def test_what_vanishes_while_we_look_breaks_nothing(tmp_path: Path) -> None:
    """IN-03: the file went between the look and the reading, then its folder, then the root."""

    class Vanishing(RealDisk):
        def read_from(self, path: Path, offset: int, size: int = -1) -> bytes:
            path.unlink()
            return super().read_from(path, offset, size)

    put(tmp_path / "root/a")
    scanner = Scanner(Vanishing())
    roots = [Root(Source.WORKSPACE, str(tmp_path / "root"))]
    (gone,) = scanner.scan(roots, LIMITS)
    assert gone.problem == "SKILL.md cannot be read: No such file or directory"
    assert scanner.scan(roots, LIMITS) == ()
    put(tmp_path / "root/a")
    scanner = Scanner(RealDisk())
    (back,) = scanner.scan(roots, LIMITS)
    assert back.front is not None
    (tmp_path / "root/a/SKILL.md").unlink()
    (tmp_path / "root/a").rmdir()
    assert scanner.scan(roots, LIMITS) == ()
    (tmp_path / "root").rmdir()
    assert scanner.scan(roots, LIMITS) == ()


def test_limits_leave_a_word(tmp_path: Path) -> None:
    for number in range(12):
        put(tmp_path / f"s{number:02}")
    few = scan(tmp_path, limits=SkillsLimits(max_skills_loaded_per_source=10))
    assert len([f for f in few if f.front]) == 10
    assert few[-1].problem == "more than 10 skills: the rest is left out"
    few = scan(tmp_path, limits=SkillsLimits(max_candidates_per_root=5))
    assert len([f for f in few if f.front]) == 5
    assert [f.problem for f in few if f.problem] == ["more than 5 folders: the rest is left out"]


def test_the_stronger_place_wins(tmp_path: Path) -> None:
    """SK-01: of two with one name the workspace's counts, and the other says so."""
    roots = []
    for source in Source:
        put(tmp_path / source.value / "same")
        put(tmp_path / source.value / source.value)
        roots.append(Root(source, str(tmp_path / source.value)))
    found = Scanner(RealDisk()).scan(roots, LIMITS)
    verdicts = judged(found, SkillsSettings(), ALL_HERE)
    same = [v for v in verdicts if v.found.name == "same"]
    assert same[0].found.source is Source.WORKSPACE and same[0].eligible
    assert len(same) == 6
    assert all(v.shadowed and "openclaw-workspace" in v.reason for v in same[1:])
    assert sum(v.eligible for v in verdicts) == 7
