"""A request's beginning stays the same while nothing changed, and what broke it is named."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from claw_engine.agent.context.hygiene import turns_of
from claw_engine.agent.prompt.builder import Limits, PromptBuilder
from claw_engine.agent.prompt.facts import Facts
from claw_engine.agent.prompt.prefix import cache_break, first_change
from claw_engine.agent.prompt.system_report import ReportBook, Told
from claw_engine.config.sections.skills import SkillsLimits
from claw_engine.messages import AssistantMessage, TextBlock, UserMessage
from claw_engine.models.base import Encoded, Request, ToolSpec
from claw_engine.models.codecs import openai_chat
from claw_engine.models.rules import WireRules
from claw_engine.parts import Part, PartKind
from claw_engine.sessions.entries import StoredMessage
from claw_engine.skills.listing import Shown, listing
from claw_engine.skills.model import Front
from claw_engine.world import RealClock, RealDisk
from tests.agent.bench import REF
from tests.agent.prompt.test_sections import FACTS

TALK = (
    UserMessage((TextBlock("[Mon 2026-11-30 08:46 UTC] hi"),), 1),
    AssistantMessage((TextBlock("Hello."),), timestamp=2),
    UserMessage((TextBlock("[Mon 2026-11-30 08:47 UTC] and?"),), 3),
)
SPEC = ToolSpec(Part("tool:read", PartKind.TOOL, "tool:read", '{"name":"read"}', "read"))
SKILLS = listing([Shown(Front("a", "does it", "a"), "/a/SKILL.md", "/a/SKILL.md")], SkillsLimits())


class Rig:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.builder = PromptBuilder(RealDisk(), RealClock())

    async def sent(
        self, turns: int = 1, facts: Facts = FACTS, specs: tuple[ToolSpec, ...] = (SPEC,)
    ) -> Encoded:
        await self.builder.prepare(self.root)
        prompt = await self.builder.build(
            facts, "agent:main:main", Limits(), None, self.root, SKILLS
        )
        stored = [StoredMessage(f"e{n}", None, m, n) for n, m in enumerate(TALK[:turns])]
        request = Request(REF, prompt.parts, specs, tuple(turns_of(stored)))
        return openai_chat.encode(request, WireRules(), {})


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_a_talk_that_goes_on_breaks_nothing(rig: Rig) -> None:
    first, later = await rig.sent(1), await rig.sent(3)
    assert cache_break(first, later) is None
    assert cache_break(first, first) is None
    # Up to the last message of the first, byte for byte.
    end = first.body.index(b'],"stream"')
    assert later.body[:end] == first.body[:end]


async def test_an_edited_file_is_named(rig: Rig) -> None:
    before = await rig.sent(2)
    (rig.root / "AGENTS.md").write_text("Other rules.")
    found = cache_break(before, await rig.sent(3))
    assert found is not None
    assert found.sentence() == "cache broke at AGENTS.md"
    assert found.part.source == str(rig.root / "AGENTS.md")


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (replace(FACTS, thinking="high"), "Runtime"),
        (replace(FACTS, model="other/two"), "Runtime"),
        (replace(FACTS, timezone="UTC"), "Current Date & Time"),
        (replace(FACTS, tools=FACTS.tools[1:]), "Tooling"),
    ],
)
async def test_what_may_change_stands_as_late_as_it_can(rig: Rig, facts: Facts, name: str) -> None:
    """Model and level change from run to run: they stand behind all that does not."""
    found = cache_break(await rig.sent(), await rig.sent(facts=facts))
    assert found is not None and found.part.name == name


async def test_tools_come_first_for_a_cache(rig: Rig) -> None:
    other = ToolSpec(replace(SPEC.part, text='{"name":"read","x":1}'))
    found = cache_break(await rig.sent(), await rig.sent(specs=(other,)))
    assert found is not None and (found.part.name, found.kept) == ("read", 0)


async def test_a_talk_that_lost_messages_names_the_first(rig: Rig) -> None:
    found = cache_break(await rig.sent(3), await rig.sent(2))
    assert found is not None and found.part.source == "e2"


def test_kinds_count_and_ids_do_not() -> None:
    one = Part("a", PartKind.USER, "s", "text")
    assert first_change([one], [replace(one, id="b")]) is None
    assert first_change([one], [replace(one, kind=PartKind.FILE)]) is not None
    assert first_change([], [one]) is None


async def test_the_log_says_what_broke_it(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    book = ReportBook()

    async def run() -> None:
        await rig.builder.prepare(rig.root)
        prompt = await rig.builder.build(FACTS, "agent:main:main", Limits(), None, rig.root)
        book.of(Told(prompt, (SPEC,), REF, "agent:main:main", "/ws", Limits()), lambda: 1)

    with caplog.at_level(logging.INFO, "claw.agent"):
        await run()
        await run()
        assert caplog.messages == []
        (rig.root / "SOUL.md").write_text("I am a lamp.")
        await run()
    assert caplog.messages == ["prompt changed: sessionKey=agent:main:main cache broke at SOUL.md"]
