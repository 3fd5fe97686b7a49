"""The prompt of a run whose commands see the workspace under another name."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from claw_engine.agent.prompt.builder import Limits, PromptBuilder
from claw_engine.world import RealClock, RealDisk
from tests.agent.prompt.test_sections import FACTS


async def test_a_sandbox_calls_the_folder_otherwise(tmp_path: Path) -> None:
    """Also for the first prompt of a workspace, before anything has looked at it."""
    disk = RealDisk()
    builder = PromptBuilder(disk, RealClock())
    await builder.prepare(tmp_path)
    (tmp_path / "SOUL.md").write_text("I am a lamp.")
    facts = replace(FACTS, workspace="/workspace")
    prompt = await builder.build(facts, "agent:main:main", Limits(1000, 9000), None, tmp_path)
    text = "\n".join(part.text for part in prompt.parts)
    assert "I am a lamp." in text and "/workspace" in text
    disk.close()
