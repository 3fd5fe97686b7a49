"""The file tools on real files, with a real broker behind them."""

from __future__ import annotations

import asyncio
import stat

import pytest
from msgspec.structs import replace

from claw_engine.approvals.model import ApprovalKind, Decision, Status
from tests.tools.desk import Desk

ALLOW, DENY = Decision.ALLOW_ONCE, Decision.DENY


async def test_read_shows_text_with_plain_line_ends(desk: Desk) -> None:
    (desk.workspace / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    result = await desk.call("read", path="a.txt")
    assert not result.is_error
    assert result.text == "one\ntwo\n"
    assert desk.unasked


async def test_read_pages_through_a_long_file(desk: Desk) -> None:
    lines = [f"line {number} {'x' * 40}" for number in range(1, 5001)]
    (desk.workspace / "long.txt").write_text("\n".join(lines) + "\n")
    offset: int | None = 1
    got: list[str] = []
    while offset is not None:
        result = await desk.call("read", path="long.txt", offset=offset)
        assert result.details is not None
        last = result.details["lastLine"]
        assert isinstance(last, int)
        got += result.text.splitlines()[: last - offset + 1]
        offset = last + 1 if "to continue" in result.text else None
    assert got == lines


@pytest.mark.parametrize(
    ("offset", "limit", "text"),
    [
        (1, 1, "a\n\n[Showing lines 1-1. Use offset=2 to continue.]"),
        (2, 5, "b\nc"),
        (3, None, "c"),
        ("2", "1", "b\n\n[Showing lines 2-2. Use offset=3 to continue.]"),
    ],
)
async def test_offset_and_limit(desk: Desk, offset: object, limit: object, text: str) -> None:
    (desk.workspace / "abc").write_text("a\nb\nc")
    result = await desk.call("read", path="abc", offset=offset, limit=limit)
    assert result.text == text


@pytest.mark.parametrize(
    ("content", "offset", "words"),
    [(b"a\nb\n", 3, "has 2 lines"), (b"a\nb", 9, "has 2 lines"), (b"", 2, "has 0 lines")],
)
async def test_an_offset_beyond_the_end_says_how_many_lines(
    desk: Desk, content: bytes, offset: int, words: str
) -> None:
    (desk.workspace / "f").write_bytes(content)
    result = await desk.call("read", path="f", offset=offset)
    assert result.is_error
    assert words in result.text


async def test_read_of_odd_files(desk: Desk) -> None:
    (desk.workspace / "empty").write_text("")
    (desk.workspace / "wide").write_bytes("grüße\n".encode("utf-16"))
    (desk.workspace / "bin").write_bytes(b"\x7fELF\0\0\0")
    (desk.workspace / "folder").mkdir()
    (desk.workspace / "folder" / "inner.md").write_text("x")
    assert (await desk.call("read", path="empty")).text == "(empty file)"
    assert (await desk.call("read", path="wide")).text == "grüße\n"
    assert "binary file (7 bytes)" in (await desk.call("read", path="bin")).text
    assert "It holds: inner.md" in (await desk.call("read", path="folder")).text


async def test_a_missing_file_is_answered_with_near_names(desk: Desk) -> None:
    (desk.workspace / "README.md").write_text("x")
    result = await desk.call("read", path="REDME.md")
    assert result.is_error
    assert "does not exist. Similar names there: README.md" in result.text


async def test_write_creates_parents_and_replaces_atomically(desk: Desk) -> None:
    created = await desk.call("write", path="a/b/c.txt", content="one")
    assert created.text == "Created a/b/c.txt (3 bytes)."
    file = desk.workspace / "a/b/c.txt"
    file.chmod(0o640)
    replaced = await desk.call("write", file_path="a/b/c.txt", content="zwölf")
    assert replaced.text == "Wrote a/b/c.txt (6 bytes)."
    assert file.read_text() == "zwölf"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [entry.name for entry in file.parent.iterdir()] == ["c.txt"]


async def test_write_through_a_link_changes_the_file_behind_it(desk: Desk) -> None:
    (desk.workspace / "real.txt").write_text("old")
    (desk.workspace / "link.txt").symlink_to("real.txt")
    await desk.call("write", path="link.txt", content="new")
    assert (desk.workspace / "link.txt").is_symlink()
    assert (desk.workspace / "real.txt").read_text() == "new"


async def test_edit_keeps_mark_and_line_ends(desk: Desk) -> None:
    file = desk.workspace / "w.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    result = await desk.call("edit", path="w.txt", old_string="one\ntwo", new_string="1\n2")
    assert result.text == "Edited w.txt at line 1."
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"


async def test_edit_explains_what_it_cannot_do(desk: Desk) -> None:
    (desk.workspace / "t").write_text("x\nx\n")
    (desk.workspace / "latin").write_bytes(b"gr\xfc\xdfe")
    assert (
        "2 times (lines 1, 2)" in (await desk.call("edit", path="t", oldText="x", newText="y")).text
    )
    latin = await desk.call("edit", path="latin", oldText="gr", newText="y")
    assert "not UTF-8" in latin.text
    assert (desk.workspace / "t").read_text() == "x\nx\n"


async def test_parallel_edits_of_one_file_all_count(desk: Desk) -> None:
    file = desk.workspace / "list"
    file.write_text("".join(f"item-{n};\n" for n in range(12)))
    calls = (
        desk.call("edit", path="list", oldText=f"item-{n};", newText=f"{n}!") for n in range(12)
    )
    results = await asyncio.gather(*calls)
    assert [r.text for r in results if r.is_error] == []
    assert file.read_text() == "".join(f"{n}!\n" for n in range(12))


@pytest.mark.parametrize("tool", ["read", "write", "edit"])
async def test_the_state_directory_is_refused_and_nobody_is_asked(desk: Desk, tool: str) -> None:
    desk.state.config.write_text("{}")
    args = {"read": {}, "write": {"content": "x"}, "edit": {"oldText": "{", "newText": "["}}[tool]
    for path in ("../openclaw.json", str(desk.state.config), str(desk.state.door_key)):
        result = await desk.call(tool, path=path, **args)
        assert result.is_error
        assert "state directory" in result.text
    assert desk.unasked
    assert desk.state.config.read_text() == "{}"
    assert not desk.state.door_key.exists()


async def test_outside_the_workspace_is_asked_for_with_the_whole_truth(desk: Desk) -> None:
    (desk.outside / "data.txt").write_text("data")
    (desk.workspace / "link").symlink_to(desk.outside / "data.txt")
    result, record = await desk.answered(ALLOW, "read", path="link")
    assert result.text == "data"
    ask = record.ask
    assert ask.kind is ApprovalKind.READ
    assert ask.command == f"read {desk.outside}/data.txt"
    assert ask.why == "because"
    assert "outside the workspace" in ask.reasons
    assert ask.always.patterns == () and ask.always.refusal
    assert desk.ended() == [Status.PENDING, Status.RESOLVED]


async def test_a_path_cannot_forge_a_second_line_on_the_card(desk: Desk) -> None:
    path = desk.outside / "x\nread harmless\u202e"
    path.write_text("data")
    _, record = await desk.answered(DENY, "read", path=str(path))
    assert record.ask.command.isprintable()
    assert "\\n" in record.ask.command


async def test_a_refused_file_tells_the_model_why(desk: Desk) -> None:
    file = desk.outside / "new.txt"
    result, record = await desk.answered(
        DENY, "write", reason="not there", path=str(file), content="text"
    )
    assert result.is_error
    assert "Denied by the operator" in result.text
    assert "Their reason: not there" in result.text
    assert "text" in record.ask.command
    assert not file.exists()


async def test_an_approved_write_outside_is_done(desk: Desk) -> None:
    file = desk.outside / "deep/new.txt"
    result, _ = await desk.answered(ALLOW, "write", path=str(file), content="text")
    assert not result.is_error
    assert file.read_text() == "text"


@pytest.mark.parametrize("fields", [{"security": "full"}, {"security": "full", "ask": "off"}])
async def test_a_looser_rules_file_does_not_loosen_the_configuration(
    desk: Desk, fields: dict[str, str]
) -> None:
    (desk.outside / "data.txt").write_text("data")
    desk.policy(**fields)
    result, _ = await desk.answered(DENY, "read", path=str(desk.outside / "data.txt"))
    assert result.is_error


async def test_a_policy_of_deny_asks_nobody(desk: Desk) -> None:
    (desk.outside / "data.txt").write_text("data")
    desk.policy(security="deny")
    result = await desk.call("read", path=str(desk.outside / "data.txt"))
    assert result.is_error
    assert desk.unasked


async def test_a_file_swapped_while_asking_is_asked_for_anew(desk: Desk) -> None:
    file = desk.outside / "a.txt"
    file.write_text("approved")
    task = asyncio.create_task(desk.call("read", path=str(file)))
    first = await desk.asked()
    (desk.outside / "b.txt").write_text("other bytes")
    (desk.outside / "b.txt").replace(file)
    await desk.decide(first, ALLOW)
    second = await desk.asked()
    assert not task.done()
    assert "Changed since you approved" in second.ask.reasons[0]
    await desk.decide(second, DENY)
    assert "other bytes" not in (await task).text


async def test_a_link_switched_to_the_state_while_asking_is_refused(desk: Desk) -> None:
    desk.state.config.write_text("{secret}")
    folder = desk.outside / "folder"
    folder.mkdir()
    (folder / "openclaw.json").write_text("harmless")

    def switch() -> None:
        folder.rename(desk.outside / "aside")
        folder.symlink_to(desk.state.root)

    result, _ = await desk.answered(
        ALLOW, "read", path=str(folder / "openclaw.json"), meanwhile=switch
    )
    assert result.is_error
    assert "secret" not in result.text


async def test_an_approved_edit_is_for_the_content_that_was_there(desk: Desk) -> None:
    file = desk.outside / "conf"
    file.write_text("port = 1\n")
    task = asyncio.create_task(
        desk.call("edit", path=str(file), oldText="port = 1", newText="port = 2")
    )
    first = await desk.asked()
    file.write_text("danger\nport = 1\n")
    await desk.decide(first, ALLOW)
    second = await desk.asked()
    await desk.decide(second, ALLOW)
    assert not (await task).is_error
    assert file.read_text() == "danger\nport = 2\n"


async def test_what_keeps_changing_is_given_up(desk: Desk) -> None:
    file = desk.outside / "conf"
    file.write_text("0")
    task = asyncio.create_task(desk.call("write", path=str(file), content="mine"))
    for number in ("1", "2"):
        record = await desk.asked()
        file.write_text(number)
        await desk.decide(record, ALLOW)
    result = await task
    assert result.is_error and "keeps changing" in result.text
    assert file.read_text() == "2"


async def test_what_the_system_refuses_is_an_error_the_model_sees(desk: Desk) -> None:
    (desk.workspace / "file").write_text("x")
    result = await desk.call("write", path="file/below", content="x")
    assert result.is_error
    assert "Not a directory" in result.text


async def test_workspace_only_asks_nobody(desk: Desk) -> None:
    fs = replace(desk.settings.tools.fs, workspace_only=True)
    desk.settings = replace(desk.settings, tools=replace(desk.settings.tools, fs=fs))
    result = await desk.call("read", path="/etc/hostname")
    assert result.is_error and "outside the workspace" in result.text
    assert desk.unasked
