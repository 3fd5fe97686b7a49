from __future__ import annotations

import glob
from pathlib import Path

import pytest

from claw_engine.sandbox.machine import matching


@pytest.mark.parametrize(
    "pattern",
    [
        "tmux-*/*", "tmux-*", "tm?x-1000", "[ts]*", "*", "*x-1", "plain", "dangling", "nothing",
        "nothing/*", "plain/*", "ssh-*/agent.*", "", "tmux-1000/default", ".hid*",
    ],
)  # fmt: skip
def test_names_match_as_the_standard_library_matches(tmp_path: Path, pattern: str) -> None:
    for folder in ("tmux-1000", "tmux-1", "ssh-abc", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "default").touch()
    (tmp_path / "ssh-abc" / "agent.7").touch()
    (tmp_path / "plain").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    wanted = f"{tmp_path}/{pattern}"
    assert sorted(matching(wanted)) == sorted(glob.glob(wanted))  # noqa: PTH207 - the oracle
