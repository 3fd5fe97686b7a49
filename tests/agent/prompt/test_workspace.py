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
