"""docs/cases.md tells the truth: each file it names is there and names the case."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| ([A-Z]{2}-\d{2}) \| .+ \| (.+) \|$")


def rows() -> list[tuple[str, list[str]]]:
    """Every case with the files that test it."""
    found = map(ROW.match, (ROOT / "docs" / "cases.md").read_text().splitlines())
    return [(row[1], re.findall(r"`([^`]+)`", row[2])) for row in found if row]


@pytest.mark.parametrize(("case", "files"), rows(), ids=[case for case, _ in rows()])
def test_every_file_is_there_and_names_its_case(case: str, files: list[str]) -> None:
    assert files
    for file in files:
        assert case in (ROOT / file).read_text(), f"{file} does not say {case}"


def test_each_case_stands_once() -> None:
    cases = [case for case, _ in rows()]
    assert len(cases) >= 32
    assert len(set(cases)) == len(cases)


def test_what_waits_says_for_what() -> None:
    waiting = tomllib.loads((ROOT / "tests" / "waiting.toml").read_text())["waiting"]
    for entry in waiting:
        assert set(entry) == {"case", "part", "engine"}
        assert all(entry.values())
