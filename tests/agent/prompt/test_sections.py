"""The system prompt: order, tools, nothing that changes by itself."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from claw_engine.agent.context.tokens import estimate
from claw_engine.agent.prompt.builder import assemble
from claw_engine.agent.prompt.facts import Facts, Host
from claw_engine.agent.prompt.report import size_changes
from claw_engine.agent.prompt.workspace import WorkspaceFile, inject, template

FACTS = Facts(
    agent_id="main",
    model="fake/one",
    thinking="off",
    timezone="Europe/Berlin",
    workspace="/ws",
    host=Host("Linux 6.1", "x86_64", "bash"),
    tools=(("zeta", "last"), ("exec", "runs a command"), ("read", "reads a file")),
)
FILES = inject(
    [WorkspaceFile(n, Path("/ws") / n, template(n)) for n in ("AGENTS.md", "SOUL.md")], 20000, 99999
)


def test_sections_stand_in_their_order() -> None:
    prompt = assemble(FACTS, FILES)
    assert [part.name for part in prompt.parts] == [
        "Identity", "Tooling", "Tool Call Style", "Safety", "Claw CLI Quick Reference",
        "Workspace", "Current Date & Time", "Workspace Files (injected)", "Project Context",
        "AGENTS.md", "SOUL.md", "Runtime",
    ]  # fmt: skip
    assert prompt.chars == sum(len(p.text) for p in prompt.parts)


def test_tools_stand_in_prompt_order() -> None:
    tooling = assemble(FACTS, FILES).parts[1].text
    lines = [line for line in tooling.splitlines() if line.startswith("- ")]
    assert lines == ["- read: reads a file", "- exec: runs a command", "- zeta: last"]
    without = assemble(replace(FACTS, tools=()), ()).parts
    assert "No tools" in without[1].text
    assert all(part.name != "Project Context" for part in without)


def test_the_soul_is_mentioned_only_when_it_is_there() -> None:
    def context(files: object) -> str:
        parts = assemble(FACTS, files).parts  # type: ignore[arg-type]  # a slice of FILES
        return next(p.text for p in parts if p.name == "Project Context")

    assert "SOUL.md" in context(FILES)
    assert "SOUL.md" not in context(FILES[:1])


def test_the_prompt_is_lean() -> None:
    fixed = sum(len(p.text) for p in assemble(FACTS, ()).parts)
    assert fixed < 2_100


def test_a_change_of_files_is_told_in_tokens() -> None:
    before = {"A.md": "one", "B.md": "two", "C.md": "three", "E.md": "Take care."}
    after = {"A.md": "one " * 9, "C.md": "three", "D.md": "four", "E.md": "TAKE care."}
    grown = estimate(after["A.md"]) - estimate("one")
    assert size_changes(before, after)[:3] == [
        f"A.md changed (+{grown} tokens)", f"B.md removed (-{estimate('two')} tokens)",
        f"D.md added (+{estimate('four')} tokens)",
    ]  # fmt: skip
    same = {"E.md": "abc 1"}
    assert size_changes(same, {"E.md": "abd 1"}) == ["E.md changed (as many tokens as before)"]
    assert size_changes(same, dict(same)) == []
