"""Which section stands in which prompt: each only where what it speaks of is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from claw_engine.agent.briefing import shown_hash
from claw_engine.agent.context.tokens import estimate
from claw_engine.agent.prompt import wording
from claw_engine.agent.prompt.builder import assemble
from claw_engine.agent.prompt.facts import (
    Boxed,
    Facts,
    Host,
    Surface,
    mode_of,
    needs_reasoning_tags,
)
from claw_engine.agent.prompt.workspace import WorkspaceFile, inject
from claw_engine.parts import Part, PartKind
from tests.agent.prompt.test_sections import FACTS


class OneSkill(Struct, frozen=True):
    parts: tuple[Part, ...] = (Part("skill:a", PartKind.SKILL, "/s/a", "<skill>a</skill>", "a"),)
    warning: str = ""


EVERY_TOOL = tuple(
    (name, "x")
    for name in ("read", "exec", "process", "message", "gateway", "sessions_send", "subagents",
                 "session_status", "sessions_spawn", "memory_search", "memory_get")
)  # fmt: skip
EVERYWHERE = Surface(
    channel="telegram", capabilities=("inlineButtons",), reply_tags=True, silent=True,
    reactions="minimal", tts_hint="Speak.", hints=("Use stickers.",), context="A group of three.",
)  # fmt: skip
EVERYTHING = replace(
    FACTS, tools=EVERY_TOOL, aliases=(("fast", "a/b"),), owners=("42",), surface=EVERYWHERE,
    host=Host("Linux", "x86_64", "bash", "nas", "/docs"), reasoning_tags=True,
    box=Boxed("docker", "/workspace", "none"), heartbeat="Look around.", default_model="a/b",
)  # fmt: skip
FILES = inject([WorkspaceFile("AGENTS.md", Path("/ws/AGENTS.md"), "Hi.")], 20_000, 150_000)

FULL = [
    "Identity", "Tooling", "Tool Call Style", "Safety", "Claw CLI Quick Reference", "Skills", "a",
    "Skills (end)", "Memory Recall", "Self-Update", "Model Aliases", "Workspace", "Documentation",
    "Sandbox", "Authorized Senders", "Current Date & Time", "Workspace Files (injected)",
    "Reply Tags", "Messaging", "Voice (TTS)", "Group Chat Context", "Reactions",
    "Reasoning Format", "Project Context", "AGENTS.md", "Silent Replies", "Heartbeats", "Runtime",
]  # fmt: skip


def names(facts: Facts) -> list[str]:
    return [part.name for part in assemble(facts, FILES, OneSkill()).parts]


def text(facts: Facts, name: str) -> str:
    return next(part.text for part in assemble(facts, FILES, OneSkill()).parts if part.name == name)


def test_a_full_prompt_has_every_section_in_order() -> None:
    assert names(EVERYTHING) == FULL


def test_a_short_prompt_leaves_out_what_only_a_person_needs() -> None:
    gone = {
        "Memory Recall", "Self-Update", "Model Aliases", "Documentation", "Authorized Senders",
        "Reply Tags", "Messaging", "Voice (TTS)", "Silent Replies", "Heartbeats",
    }  # fmt: skip
    kept = [name for name in FULL if name not in gone]
    kept[kept.index("Group Chat Context")] = "Subagent Context"
    assert names(replace(EVERYTHING, mode="minimal")) == kept


def test_the_shortest_says_who_it_is() -> None:
    assert names(replace(EVERYTHING, mode="none")) == ["Identity"]


def test_what_is_not_there_is_not_spoken_of() -> None:
    bare = replace(EVERYTHING, tools=(("exec", "x"),), aliases=(), owners=(), surface=Surface(),
                   host=FACTS.host, reasoning_tags=False, box=None, heartbeat="")  # fmt: skip
    assert names(bare) == [
        "Identity", "Tooling", "Tool Call Style", "Safety", "Claw CLI Quick Reference",
        "Workspace", "Current Date & Time", "Workspace Files (injected)", "Project Context",
        "AGENTS.md", "Runtime",
    ]  # fmt: skip
    said = "\n".join(part.text for part in assemble(bare, ()).parts)
    for word in ("NO_REPLY", "HEARTBEAT_OK", "reply_to", "sessions_spawn", "memory_", "<think>"):
        assert word not in said


@pytest.mark.parametrize(
    ("key", "mode"),
    [
        ("agent:main:main", "full"),
        ("agent:main:cron:job:run:1", "full"),
        ("agent:main:subagent:1", "minimal"),
        ("agent:main:cron:job:subagent:1", "minimal"),
        ("agent:main:telegram:group:9", "full"),
    ],
)
def test_the_mode_follows_the_session(key: str, mode: str) -> None:
    assert mode_of(key) == mode


@pytest.mark.parametrize(
    ("provider", "tags"),
    [("google", True), ("google-gemini-cli", True), ("my-minimax-x", True), ("openai", False)],
)
def test_who_needs_reasoning_tags(provider: str, tags: bool) -> None:
    assert needs_reasoning_tags(provider) is tags


@pytest.mark.parametrize(
    ("box", "says", "not_says"),
    [
        (Boxed("docker", "/workspace", "none", network="none"),
         ["docker", "/workspace", "no network", "Nothing of the agent's"], ["elevated"]),
        (Boxed("docker", "/workspace", "ro", "/agent", "bridge"),
         ["read at /agent"], ["no network", "Nothing"]),
        (Boxed("bwrap", "/ws", "rw", elevated="ask"),
         ["workspace itself", "elevated=false", "asks your user"], ["not asked"]),
        (Boxed("bwrap", "/ws", "rw", elevated="full"), ["not asked about"], ["asks your"]),
        (Boxed("", "/ws", "none", broken="no bwrap"), ["does not work: no bwrap"],
         ["Commands run"]),
    ],
)  # fmt: skip
def test_the_sandbox_is_told_as_it_is(box: Boxed, says: list[str], not_says: list[str]) -> None:
    said = text(replace(FACTS, box=box), "Sandbox")
    assert all(words in said for words in says)
    assert not any(words in said for words in not_says)


def test_no_clock_and_nothing_of_one_message() -> None:
    said = "\n".join(part.text for part in assemble(EVERYTHING, ()).parts)
    assert "Time zone: Europe/Berlin" in said
    assert not re.search(r"\b\d{1,2}:\d{2}\b|20\d\d-", said)


def test_owners_may_be_shown_by_hash() -> None:
    assert shown_hash("42", "") == "73475cb40a56"  # sha256("42")
    keyed = shown_hash("42", "pepper")
    assert re.fullmatch(r"[0-9a-f]{12}", keyed)
    assert keyed not in (shown_hash("42", ""), shown_hash("43", "pepper"), shown_hash("42", "salt"))


def test_citations_can_be_off() -> None:
    assert wording.CITE in text(EVERYTHING, "Memory Recall")
    assert wording.NO_CITE in text(replace(EVERYTHING, citations=False), "Memory Recall")


def test_the_runtime_line_tells_only_what_is_known() -> None:
    line = text(EVERYTHING, "Runtime").splitlines()[1]
    assert line == (
        "Runtime: agent=main | host=nas | os=Linux (x86_64) | shell=bash | model=fake/one | "
        "default_model=a/b | channel=telegram | capabilities=inlineButtons | thinking=off"
    )
    line = text(replace(FACTS, reasoning="on"), "Runtime").splitlines()[1]
    assert line == (
        "Runtime: agent=main | os=Linux 6.1 (x86_64) | shell=bash | model=fake/one | "
        "thinking=off | reasoning=on"
    )


def test_skills_need_a_tool_to_read_them_with() -> None:
    assert "Skills" not in names(replace(EVERYTHING, tools=(("exec", "x"),)))


def test_unchanged_sections_stay_the_same_objects() -> None:
    before = assemble(FACTS, FILES).parts
    after = assemble(replace(FACTS, thinking="high"), FILES).parts
    assert [a is b for a, b in zip(before, after, strict=True)] == [True] * (len(before) - 1) + [
        False
    ]


def test_every_sentence_earns_its_tokens() -> None:
    """All of it at once, which nobody has; a plain talk is measured in test_sections."""
    parts = assemble(EVERYTHING, ()).parts
    assert sum(estimate(part.text) for part in parts) < 1_300
