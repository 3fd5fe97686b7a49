"""When a skill may be used, and what is said when it may not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.config.sections.skills import SkillEntry, SkillsSettings
from claw_engine.skills.gates import Machine, judged
from claw_engine.skills.model import Found, Front, Requires, Source
from claw_engine.skills.shelf import on_path

FRONT = Front("a", "does it", "key")
MACHINE = Machine({"jq", "rg"}.__contains__, {"A": "1", "EMPTY": ""},
                  {"browser": {"enabled": True, "off": False}}, "linux")  # fmt: skip


@pytest.mark.parametrize(
    ("needs", "missing"),
    [
        (Requires(), Requires()),
        (Requires(bins=("jq", "rg")), Requires()),
        (Requires(bins=("jq", "no")), Requires(bins=("no",))),
        (Requires(any_bins=("no", "rg")), Requires()),
        (Requires(any_bins=("no", "none")), Requires(any_bins=("no", "none"))),
        (Requires(env=("A",)), Requires()),
        (Requires(env=("A", "B", "EMPTY")), Requires(env=("B", "EMPTY"))),
        (Requires(config=("browser.enabled",)), Requires()),
        (Requires(config=("browser.off", "browser.none", "x.y")),
         Requires(config=("browser.off", "browser.none", "x.y"))),
        (Requires(os=("linux", "darwin")), Requires()),
        (Requires(os=("darwin", "win32")), Requires(os=("darwin", "win32"))),
    ],
)  # fmt: skip
def test_what_is_missing(needs: Requires, missing: Requires) -> None:
    found = Found(Source.MANAGED, "/s/a/SKILL.md", "/s/a", replace(FRONT, requires=needs))
    (verdict,) = judged([found], SkillsSettings(), MACHINE)
    assert verdict.missing == missing
    assert verdict.eligible is not bool(missing)
    assert bool(verdict.reason) is bool(missing)


def test_always_needs_only_the_system() -> None:
    needs = Requires(bins=("no",), any_bins=("no",), env=("B",), config=("x",), os=("linux",))
    front = replace(FRONT, always=True, requires=needs)
    (verdict,) = judged([Found(Source.MANAGED, "p", "f", front)], SkillsSettings(), MACHINE)
    assert verdict.eligible
    front = replace(front, requires=replace(needs, os=("darwin",)))
    (verdict,) = judged([Found(Source.MANAGED, "p", "f", front)], SkillsSettings(), MACHINE)
    assert verdict.missing == Requires(os=("darwin",))


@pytest.mark.parametrize(
    ("settings", "source", "wanted", "reason"),
    [
        (SkillsSettings(entries={"key": SkillEntry(enabled=False)}), Source.MANAGED, None,
         "switched off: skills.entries.key.enabled"),
        (SkillsSettings(entries={"a": SkillEntry(enabled=False)}), Source.MANAGED, None, ""),
        (SkillsSettings(allow_bundled=()), Source.BUNDLED, None, "not in skills.allowBundled"),
        (SkillsSettings(allow_bundled=()), Source.MANAGED, None, ""),
        (SkillsSettings(allow_bundled=("a",)), Source.BUNDLED, None, ""),
        (SkillsSettings(allow_bundled=("key",)), Source.BUNDLED, None, ""),
        (SkillsSettings(), Source.MANAGED, {"a"}, ""),
        (SkillsSettings(), Source.MANAGED, set(), "not among the agent's skills"),
    ],
)  # fmt: skip
def test_switches(
    settings: SkillsSettings, source: Source, wanted: set[str] | None, reason: str
) -> None:
    (verdict,) = judged([Found(source, "p", "f", FRONT)], settings, MACHINE, wanted)
    assert verdict.reason.startswith(reason)
    assert bool(verdict.reason) is bool(reason)
    assert verdict.eligible is not bool(reason)


def test_what_the_model_may_not_call_is_usable_but_not_shown() -> None:
    front = replace(FRONT, for_model=False)
    (verdict,) = judged([Found(Source.MANAGED, "p", "f", front)], SkillsSettings(), MACHINE)
    assert verdict.eligible and "disable-model-invocation" in verdict.reason


def test_programs_are_looked_for_as_a_shell_does(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.touch()
    (tmp_path / "folder").mkdir()
    path = f"/nowhere:{tmp_path}"
    assert not on_path("tool", path)
    program.chmod(0o755)
    assert on_path("tool", path)
    for name in ("folder", "", "none", str(program), "../tool", "to\0ol"):
        assert not on_path(name, path)
    assert on_path("sh", os.defpath)
