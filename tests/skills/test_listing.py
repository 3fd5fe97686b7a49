"""The list in the prompt: one part a skill, escaped, inside its limits."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.sections.skills import SkillsLimits
from claw_engine.parts import PartKind
from claw_engine.skills.listing import Shown, listing, short_path
from claw_engine.skills.model import Front

LIMITS = SkillsLimits()


def shown(number: int, description: str = "does it") -> Shown:
    name = f"s{number:03}"
    return Shown(Front(name, description, name), f"/h/{name}/SKILL.md", f"~/{name}/SKILL.md")


def test_each_skill_is_a_part_of_its_own() -> None:
    found = listing([shown(1, "a < b & c"), shown(2)], LIMITS)
    assert [(p.id, p.kind, p.source, p.name) for p in found.parts] == [
        ("skill:s001", PartKind.SKILL, "/h/s001/SKILL.md", "s001"),
        ("skill:s002", PartKind.SKILL, "/h/s002/SKILL.md", "s002"),
    ]
    assert found.parts[0].text == (
        "<skill><name>s001</name><description>a &lt; b &amp; c</description>"
        "<location>~/s001/SKILL.md</location></skill>"
    )
    assert (found.warning, found.left_out) == ("", ())
    assert listing([shown(2)], LIMITS).parts[0] is found.parts[1]


def test_a_hundred_and_fifty_and_no_more() -> None:
    found = listing([shown(n) for n in range(160)], LIMITS)
    assert len(found.parts) == 150
    assert found.left_out == tuple(f"s{n}" for n in range(150, 160))
    assert found.warning.startswith("Only 150 of 160 skills")
    assert listing([shown(1)], SkillsLimits(max_skills_in_prompt=0)).parts == ()


@given(st.lists(st.integers(1, 1024), max_size=60), st.integers(0, 30_000))
def test_as_many_characters_as_allowed_and_the_most_that_fit(sizes: list[int], room: int) -> None:
    skills = [shown(n, "d" * size) for n, size in enumerate(sizes)]
    limits = SkillsLimits(max_skills_prompt_chars=room)
    found = listing(skills, limits)

    def chars(count: int) -> int:
        parts = listing(skills[:count], LIMITS).parts
        return len(
            "\n".join(["<available_skills>", *(p.text for p in parts), "</available_skills>"])
        )

    count = len(found.parts)
    assert count == 0 or chars(count) <= room
    assert count == len(skills) or chars(count + 1) > room


@given(st.text(max_size=200).filter(str.isprintable))
def test_no_description_ends_its_element(text: str) -> None:
    (part,) = listing([shown(1, text)], LIMITS).parts
    assert ElementTree.fromstring(part.text).findtext("description") in (text, text or "")


def test_paths_below_home_are_short() -> None:
    short = short_path("/home/u")
    assert short("/home/u/a/SKILL.md") == "~/a/SKILL.md"
    assert short("/home/user/a") == "/home/user/a"
    assert short_path("")("/a") == "/a"
