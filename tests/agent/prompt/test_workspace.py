"""Workspace files: seeding, escapes, limits, cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from claw_engine.agent.prompt.workspace import (
    BOOTSTRAP,
    EXPECTED,
    Workspace,
    WorkspaceFile,
    files_for,
    inject,
    seed,
    shorten,
    template,
)
from claw_engine.world import RealDisk
from tests.support.fakes import FakeClock

DISK = RealDisk()
CLOCK = FakeClock()


def names(root: Path) -> list[str]:
    return [file.name for file in Workspace(DISK, root).load()]


def test_a_new_workspace_gets_every_template_once(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    assert seed(DISK, CLOCK, root) == [*EXPECTED, BOOTSTRAP]
    assert (root / "SOUL.md").read_text() == template("SOUL.md")
    (root / "SOUL.md").write_text("mine")
    assert seed(DISK, CLOCK, root) == []
    assert (root / "SOUL.md").read_text() == "mine"


def test_bootstrap_never_comes_back(tmp_path: Path) -> None:
    seed(DISK, CLOCK, tmp_path)
    (tmp_path / BOOTSTRAP).unlink()
    assert seed(DISK, CLOCK, tmp_path) == []
    state = json.loads((tmp_path / ".openclaw" / "workspace-state.json").read_bytes())
    assert state == {
        "version": 1,
        "bootstrapSeededAt": "2026-11-30T08:40:00.000Z",
        "onboardingCompletedAt": "2026-11-30T08:40:00.000Z",
    }


@pytest.mark.parametrize("existing", ["MEMORY.md", "AGENTS.md", "memory", ".git"])
def test_a_workspace_in_use_gets_no_bootstrap(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).mkdir() if "." not in existing[1:] else (tmp_path / existing).touch()
    assert BOOTSTRAP not in seed(DISK, CLOCK, tmp_path)


def state_of(root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((root / ".openclaw/workspace-state.json").read_bytes())
    return found


def test_a_seeding_that_broke_off_is_finished(tmp_path: Path) -> None:
    """The templates were written, BOOTSTRAP.md was not: nobody has used it yet."""
    for name in EXPECTED:
        (tmp_path / name).write_text(template(name))
    assert seed(DISK, CLOCK, tmp_path) == [BOOTSTRAP]


def test_a_workspace_in_use_is_remembered_as_such(tmp_path: Path) -> None:
    (tmp_path / "USER.md").write_text("Ann")
    assert BOOTSTRAP not in seed(DISK, CLOCK, tmp_path)
    assert set(state_of(tmp_path)) == {"version", "onboardingCompletedAt"}
    (tmp_path / "USER.md").write_text(template("USER.md"))
    assert seed(DISK, CLOCK, tmp_path) == []


def test_a_bootstrap_of_somebody_else_counts_as_seeded(tmp_path: Path) -> None:
    (tmp_path / BOOTSTRAP).write_text("Hello")
    seed(DISK, CLOCK, tmp_path)
    assert set(state_of(tmp_path)) == {"version", "bootstrapSeededAt"}
    (tmp_path / BOOTSTRAP).unlink()
    seed(DISK, CLOCK, tmp_path)
    assert seed(DISK, CLOCK, tmp_path) == []
    assert "onboardingCompletedAt" in state_of(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2, "mine": 1}'])
def test_a_state_file_that_says_little_harms_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / ".openclaw").mkdir()
    (tmp_path / ".openclaw/workspace-state.json").write_text(text)
    assert BOOTSTRAP in seed(DISK, CLOCK, tmp_path)
    assert ("mine" in state_of(tmp_path)) is ("mine" in text)


@pytest.mark.parametrize(
    ("ending", "kept"),
    [(" \n\t", ""), ("\ufeff\u00a0\u2028\u3000", ""), ("\x1c", "\x1c"), ("\x85", "\x85")],
)
def test_ends_are_trimmed_as_openclaw_trims_them(tmp_path: Path, ending: str, kept: str) -> None:
    (tmp_path / "SOUL.md").write_text(f"me{ending}", "utf-8", newline="")
    texts = {f.name: f.text for f in Workspace(DISK, tmp_path).load()}
    assert texts["SOUL.md"] == f"me{kept}"


@pytest.mark.parametrize(
    ("size", "budget", "total", "head", "tail", "length"),
    [
        (20_000, 20_000, 150_000, None, None, 20_000),
        (20_001, 20_000, 150_000, 14_000, 4_000, None),
        (150_000, 20_000, 150_000, 14_000, 4_000, None),
        (5_000, 20_000, 1_000, 700, 200, 1_000),
        (5_000, 20_000, 64, 44, 12, 64),
        (5_000, 20_000, 63, None, None, 0),
        (64, 20_000, 64, None, None, 64),
    ],
)
def test_the_arithmetic_of_limits(
    size: int, budget: int, total: int, head: int | None, tail: int | None, length: int | None
) -> None:
    text = "".join(chr(0x4E00 + n % 5000) for n in range(size))
    injected = inject([WorkspaceFile("A.md", Path("/A.md"), text)], budget, total)
    if length == 0:
        assert injected == ()
        return
    (one,) = injected
    body = one.part.text.removeprefix("## /A.md\n")
    assert one.injected_chars == len(body) <= min(total, size if head is None else total)
    assert one.truncated is (head is not None)
    if length is not None:
        assert len(body) == length
    if head is not None:
        assert body.startswith(text[: min(head, len(body) - 1)])
        if length is None:
            assert tail is not None and body.endswith("\n" + text[-tail:])
            assert f"kept {head}+{tail} of {size}" in body


def test_what_did_not_change_stays_the_same_object() -> None:
    files = [WorkspaceFile(n, Path("/") / n, n * 50) for n in ("A.md", "B.md")]
    before = inject(files, 20_000, 150_000)
    files[0] = WorkspaceFile("A.md", Path("/A.md"), "new")
    after = inject(files, 20_000, 150_000)
    assert [a.part is b.part for a, b in zip(before, after, strict=True)] == [False, True]


def test_order_and_missing_marks(tmp_path: Path) -> None:
    for name in ("MEMORY.md", "BOOTSTRAP.md", "AGENTS.md"):
        (tmp_path / name).write_text(name)
    files = Workspace(DISK, tmp_path).load()
    assert [f.name for f in files] == [
        "AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "HEARTBEAT.md", "BOOTSTRAP.md",
        "MEMORY.md",
    ]  # fmt: skip
    parts = {i.file.name: i.part for i in inject(files, 20_000, 150_000)}
    assert parts["SOUL.md"].text.endswith(f"[MISSING] Expected at: {tmp_path / 'SOUL.md'}")
    assert parts["AGENTS.md"].text == f"## {tmp_path / 'AGENTS.md'}\nAGENTS.md"


def test_links_that_lead_out_count_as_missing(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    outside = tmp_path / "secret"
    outside.write_text("secret")
    (root / "SOUL.md").symlink_to(outside)
    os.link(outside, root / "TOOLS.md")
    os.mkfifo(root / "AGENTS.md")
    (root / "inner.md").write_text("inside")
    (root / "IDENTITY.md").symlink_to(root / "inner.md")
    texts = {f.name: f.text for f in Workspace(DISK, root).load()}
    assert texts["SOUL.md"] is None
    assert texts["TOOLS.md"] is None
    assert texts["AGENTS.md"] is None
    assert texts["IDENTITY.md"] == "inside"


def test_the_same_tuple_until_a_file_changes(tmp_path: Path) -> None:
    seed(DISK, CLOCK, tmp_path)
    workspace = Workspace(DISK, tmp_path)
    first = workspace.load()
    assert workspace.load() is first
    (tmp_path / "SOUL.md").write_text("changed")
    second = workspace.load()
    assert second is not first
    assert next(f.text for f in second if f.name == "SOUL.md") == "changed"


def test_subagents_and_cron_see_the_narrow_set() -> None:
    files = tuple(WorkspaceFile(n, Path(n), "x") for n in (*EXPECTED, BOOTSTRAP, "MEMORY.md"))
    for key in ("agent:main:subagent:1", "agent:main:cron:job"):
        assert [f.name for f in files_for(key, files)] == [
            "AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md",
        ]  # fmt: skip
    assert files_for("agent:main:main", files) is files


def test_head_seventy_tail_twenty_percent() -> None:
    text = "h" * 700 + "m" * 1000 + "t" * 200
    short = shorten("A.md", text, 1000, 2000)
    assert short.startswith("h" * 700 + "\n")
    assert short.endswith("\n" + "t" * 200)
    assert "m" not in short.replace("more", "").replace("A.md", "").replace("from", "")
    assert "700+200 of 1900" in short
    assert shorten("A.md", text, 1900, 1900) == text
    clamped = shorten("A.md", text, 1000, 100)
    assert len(clamped) == 100
    assert clamped.endswith("…")


def test_the_total_limit_ends_the_list() -> None:
    files = [WorkspaceFile(f"{n}.md", Path(f"/{n}.md"), "x" * 100) for n in range(5)]
    injected = inject(files, 1000, 250)
    assert [i.injected_chars for i in injected] == [100, 100]  # 50 left is less than 64
    assert not any(i.truncated for i in injected)
