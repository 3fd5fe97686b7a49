"""The tool: files on a real disk, questions, and all or nothing."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.approvals.model import Decision
from claw_engine.approvals.policy import PermissionMode
from claw_engine.tools.base import ToolError, ToolResult
from claw_engine.tools.patch.tool import PatchTool
from tests.tools.desk import BASE, Desk
from tests.tools.policy.support import settings_of


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


async def run(desk: Desk, text: str) -> ToolResult:
    try:
        return await PatchTool().run({"input": text}, desk.context())
    except ToolError as error:
        return ToolResult(error.sentence(), is_error=True)


def tree(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}


def anywhere(desk: Desk) -> None:
    """Let patches reach outside the workspace, with a question."""
    config = {"tools": {"exec": {"applyPatch": {"enabled": True, "workspaceOnly": False}}}}
    desk.settings = replace(settings_of(config), env=BASE)


async def test_files_are_added_changed_moved_and_deleted(desk: Desk) -> None:
    ws = desk.workspace
    (ws / "b.txt").write_text("one\ntwo\n")
    (ws / "c.sh").write_text("x\n")
    (ws / "c.sh").chmod(0o755)
    (ws / "d.txt").write_text("gone\n")
    result = await run(
        desk,
        patch(
            "*** Add File: new/a.txt", "+hello",
            "*** Update File: b.txt", "@@", " one", "-two", "+2",
            "*** Update File: c.sh", "*** Move to: bin/c.sh", "@@", "-x", "+y",
            "*** Delete File: d.txt",
        ),
    )  # fmt: skip
    assert result.text.splitlines() == [
        "Success. Updated the following files:", "A new/a.txt", "M b.txt", "M bin/c.sh", "D d.txt",
    ]  # fmt: skip
    assert result.details == {
        "summary": {
            "added": ["new/a.txt"], "modified": ["b.txt", "bin/c.sh"], "deleted": ["d.txt"],
        }
    }  # fmt: skip
    assert tree(ws) == {"new/a.txt": "hello\n", "b.txt": "one\n2\n", "bin/c.sh": "y\n"}
    assert (ws / "bin/c.sh").stat().st_mode & 0o777 == 0o755
    assert desk.unasked


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        (["*** Update File: b.txt", "-nothing", "+x"], "fits nowhere"),
        (["*** Add File: b.txt", "+x"], "exists already"),
        (["*** Delete File: missing"], "does not exist"),
        (["*** Update File: missing", "-a", "+b"], "does not exist"),
        (["*** Update File: a.txt", "*** Move to: b.txt", "-a", "+A"], "exists already"),
        (["*** Update File: bin", "-a", "+b"], "not UTF-8"),
        (["*** Delete File: folder"], "is a directory"),
        (["*** Delete File: ./b.txt", "*** Add File: folder/../b.txt", "+x"], "twice"),
        (["*** Add File: ../openclaw.json", "+x"], "state directory"),
        (["*** Add File: link/x", "+x"], "outside the workspace"),
        (["*** Add File: b.txt/x", "+x"], "[Nn]ot a directory"),
    ],
)
async def test_one_wrong_part_leaves_everything_as_it_was(
    desk: Desk, lines: list[str], word: str
) -> None:
    ws = desk.workspace
    (ws / "a.txt").write_text("a\n")
    (ws / "b.txt").write_text("b\n")
    (ws / "bin").write_bytes(b"\xff\xfe\xfd")
    (ws / "folder").mkdir()
    (ws / "link").symlink_to(desk.outside)
    before = {p: p.read_bytes() for p in ws.iterdir() if p.is_file()}
    first = ["*** Update File: a.txt", "-a", "+changed"]
    if "a.txt" in lines[0]:
        first = ["*** Add File: z", "+z"]
    result = await run(desk, patch(*first, *lines))
    assert result.is_error
    assert re.search(word, result.text), result.text
    assert {p: p.read_bytes() for p in ws.iterdir() if p.is_file()} == before
    assert list(desk.outside.iterdir()) == []
    assert desk.unasked


async def test_a_failure_while_switching_puts_everything_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk refuses the n-th rename, for every n: all or nothing each time."""
    ws = desk.workspace
    real, left = os.rename, [0]

    def rename(*args: object, **more: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device")
        real(*args, **more)  # type: ignore[arg-type]  # passed on as it came

    for failing in range(1, 6):
        for path in (ws / "a", ws / "b", ws / "n"):
            path.unlink(missing_ok=True)
        (ws / "a").write_text("a\n")
        (ws / "b").write_text("b\n")
        left[0] = failing
        monkeypatch.setattr(os, "rename", rename)
        result = await run(
            desk,
            patch("*** Add File: n", "+n", "*** Update File: a", "-a", "+A", "*** Delete File: b"),
        )
        monkeypatch.setattr(os, "rename", real)
        if failing <= 3:
            assert "No space left" in result.text
            assert tree(ws) == {"a": "a\n", "b": "b\n"}
        else:
            assert not result.is_error, result.text
            assert tree(ws) == {"a": "A\n", "n": "n\n"}
        for path in ws.iterdir():
            assert path.stat().st_nlink == 1


async def test_outside_the_workspace_one_question_covers_the_patch(desk: Desk) -> None:
    anywhere(desk)
    target = desk.outside / "x.txt"
    target.write_text("old\n")
    text = patch(f"*** Update File: {target}", "-old", "+new", "*** Add File: in.txt", "+in")
    task = asyncio.create_task(run(desk, text))
    record = await desk.asked()
    assert "-old" in record.ask.command
    assert any("changes" in r and str(target) in r and "outside" in r for r in record.ask.reasons)
    assert record.ask.binding.files[0].real == str(target)
    assert record.ask.always.patterns == ()
    await desk.decide(record, Decision.ALLOW_ONCE)
    assert not (await task).is_error
    assert target.read_text() == "new\n"
    assert (desk.workspace / "in.txt").read_text() == "in\n"


async def test_a_refused_patch_changes_nothing_inside_either(desk: Desk) -> None:
    anywhere(desk)
    text = patch(f"*** Add File: {desk.outside}/x", "+x", "*** Add File: in.txt", "+in")
    task = asyncio.create_task(run(desk, text))
    await desk.decide(await desk.asked(), Decision.DENY, "no")
    result = await task
    assert result.is_error
    assert "Denied" in result.text
    assert tree(desk.workspace) == {}
    assert list(desk.outside.iterdir()) == []


async def test_content_changed_while_asking_is_asked_for_anew(desk: Desk) -> None:
    anywhere(desk)
    target = desk.outside / "x.txt"
    target.write_text("old\nline\n")
    text = patch(f"*** Update File: {target}", "-old", "+new")
    task = asyncio.create_task(run(desk, text))
    first = await desk.asked()
    target.write_text("old\nanother\n")
    await desk.decide(first, Decision.ALLOW_ONCE)
    second = await desk.asked()
    assert any("Changed since you approved" in reason for reason in second.ask.reasons)
    await desk.decide(second, Decision.ALLOW_ONCE)
    assert not (await task).is_error
    assert target.read_text() == "new\nanother\n"


async def test_without_the_switch_it_stays_in_the_workspace(desk: Desk) -> None:
    result = await run(desk, patch(f"*** Add File: {desk.outside}/x", "+x"))
    assert "outside the workspace" in result.text
    assert desk.unasked


async def test_look_changes_nothing(desk: Desk) -> None:
    context = replace(desk.context(), mode=lambda: PermissionMode.LOOK)
    with pytest.raises(ToolError, match="permission mode look"):
        await PatchTool().run({"input": patch("*** Add File: x", "+x")}, context)


async def test_patches_and_edits_of_one_file_all_count(desk: Desk) -> None:
    (desk.workspace / "n").write_text("".join(f"line {i}\n" for i in range(8)))
    tool = desk.registry.get("apply_patch") if "apply_patch" in desk.registry.names else PatchTool()
    calls = [
        tool.run({"input": patch("*** Update File: n", f"-line {i}", f"+LINE {i}")},
                 desk.context(f"c{i}"))
        for i in range(8)
    ]  # fmt: skip
    await asyncio.gather(*calls)
    assert (desk.workspace / "n").read_text() == "".join(f"LINE {i}\n" for i in range(8))
