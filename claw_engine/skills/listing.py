"""The list of skills in the system prompt, a part each, within its limits. Pure.

Elements and limits: agent digest §7.4; one line a skill, because every space is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from msgspec import Struct

from claw_engine.config.sections.skills import SkillsLimits
from claw_engine.parts import Part, PartKind
from claw_engine.skills.model import Front

FRAME = len("<available_skills>\n</available_skills>")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


class Shown(Struct, frozen=True):
    """A skill, its file, and the file's path as the model shall write it."""

    front: Front
    path: str
    location: str


class Listing(Struct, frozen=True, eq=False):
    """`left_out` are names that did not fit; `warning` tells the model of them."""

    parts: tuple[Part, ...] = ()
    warning: str = ""
    left_out: tuple[str, ...] = ()


def listing(skills: Sequence[Shown], limits: SkillsLimits) -> Listing:
    """As many as fit, in the given order."""
    parts: list[Part] = []
    room = limits.max_skills_prompt_chars - FRAME
    for skill in skills[: limits.max_skills_in_prompt]:
        part = _part(skill.front.name, skill.front.description, skill.path, skill.location)
        room -= len(part.text) + 1
        if room < 0:
            break
        parts.append(part)
    left_out = tuple(skill.front.name for skill in skills[len(parts) :])
    warning = ""
    if left_out:
        warning = f"Only {len(parts)} of {len(skills)} skills fit here; there are more on the disk."
    return Listing(tuple(parts), warning, left_out)


@lru_cache(maxsize=512)
def _part(name: str, description: str, path: str, location: str) -> Part:
    """The same object for the same words: its size is worked out once."""
    text = (
        f"<skill><name>{_escaped(name)}</name><description>{_escaped(description)}</description>"
        f"<location>{_escaped(location)}</location></skill>"
    )
    return Part(f"skill:{name}", PartKind.SKILL, path, text, name)


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in text)


def short_path(home: str) -> Callable[[str], str]:
    """Paths below the home directory begin with ~ in the list."""
    start = home.rstrip("/") + "/"
    return lambda path: f"~/{path[len(start) :]}" if home and path.startswith(start) else path
