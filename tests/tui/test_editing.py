"""Which editor, and what is said after it; the terminal itself is in terminal/test_editing.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_tui import editing
from claw_tui.app import ClawApp
from claw_tui.editing import EditFailed, difference, edit_part, editor_command
from claw_tui.store.requests import PartInfo
from tests.tui.support import console

FILE = PartInfo("file:A.md", "file", "A.md", "/w/A.md", bytes=400, tokens=100)
SKILL = PartInfo("skill:digest", "skill", "digest", "/w/SKILL.md", bytes=90, tokens=30)


@pytest.mark.parametrize(
    ("env", "command"),
    [
        ({"EDITOR": "nano"}, ["nano"]),
        ({"EDITOR": "nano", "VISUAL": "emacs -nw"}, ["emacs", "-nw"]),
        ({"EDITOR": "code --wait", "VISUAL": ""}, ["code", "--wait"]),
        ({"EDITOR": "'/opt/my ed/e' -x"}, ["/opt/my ed/e", "-x"]),
        ({"VISUAL": "broken 'quote", "EDITOR": "vi"}, ["vi"]),
    ],
)
def test_the_editor_of_the_environment(env: dict[str, str], command: list[str]) -> None:
    assert editor_command(env) == command


def test_no_editor_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EditFailed, match="No editor"):
        editor_command({})


@pytest.mark.parametrize(
    ("part", "before", "after", "said"),
    [
        (FILE, "same", "same", "A.md is as it was"),
        (FILE, "a" * 300, "a" * 452, "A.md: +152 characters, about +38 tokens in the next run"),
        (FILE, "a" * 300, "", "A.md: -300 characters, about -75 tokens in the next run"),
        (FILE, "", "漢字" * 10, "A.md: +20 characters, about +15 tokens in the next run"),
        (FILE, "a" * 900, "a" * 901, "A.md: +1 characters, of a file that is only sent in part"),
        (SKILL, "a" * 900, "b", "digest: -899 characters; its name and description are in the next "
                                "run"),
        (PartInfo("x", "file", "", "/B.md"), "", "abcd", "/B.md: +4 characters, about +1 tokens "
                                                          "in the next run"),
    ],
)  # fmt: skip
def test_what_an_edit_does_to_the_next_run(
    part: PartInfo, before: str, after: str, said: str
) -> None:
    assert difference(part, before, after) == said


async def test_what_cannot_be_edited(tmp_path: Path) -> None:
    async def editor(app: ClawApp, path: Path) -> None:
        raise AssertionError("not asked for")

    async with console() as c:
        for source in ("A.md", str(tmp_path / "gone" / "A.md")):
            with pytest.raises(EditFailed, match="no folder"):
                await edit_part(c.app, PartInfo("x", "file", "A", source), editor)
        (tmp_path / "dir").mkdir()
        with pytest.raises(EditFailed, match="cannot be read"):
            await edit_part(c.app, PartInfo("x", "file", "A", str(tmp_path / "dir")), editor)
        with pytest.raises(EditFailed, match="cannot be handed"):
            await editing.in_terminal(c.app, tmp_path / "A.md")
        assert not c.app.away
