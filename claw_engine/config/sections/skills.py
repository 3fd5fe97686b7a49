"""Settings of skills: which folders, which are off, how many. OpenClaw's names and limits."""

from __future__ import annotations

from msgspec import field

from claw_engine.config.sections.base import Amount, Count, Names, Section


class SkillEntry(Section, frozen=True):
    """`skills.entries.<key>`."""

    enabled: bool = True


class SkillsLoad(Section, frozen=True):
    extra_dirs: Names = ()


class SkillsLimits(Section, frozen=True):
    """Numbers of skills; `max_skills_prompt_chars` in characters."""

    max_candidates_per_root: Count = 300
    max_skills_loaded_per_source: Count = 200
    max_skills_in_prompt: Amount = 150
    max_skills_prompt_chars: Amount = 30_000
    max_skill_file_bytes: Amount = 256_000


class SkillsSettings(Section, frozen=True):
    """`allow_bundled` None means: all that came with us."""

    allow_bundled: Names | None = None
    entries: dict[str, SkillEntry] = field(default_factory=dict)
    load: SkillsLoad = SkillsLoad()
    limits: SkillsLimits = SkillsLimits()
