"""The way to the skills: what reads them is loaded when somebody looks first, not at start-up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from claw_engine.probes import Found
from claw_engine.world import Clock, Disk

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings
    from claw_engine.skills.shelf import AgentSkills, SkillShelf


class SkillDoor:
    """One for the engine; `managed` is the state directory's own folder of skills."""

    def __init__(self, disk: Disk, clock: Clock, managed: Path) -> None:
        self._made = (disk, clock, managed)
        self._shelf: SkillShelf | None = None

    def look(self, settings: Settings, agent_id: str, workspace: Path) -> AgentSkills:
        """The skills there are now. Blocking: for the disk's thread; raises nothing."""
        if self._shelf is None:
            from claw_engine.skills.shelf import SkillShelf  # 10 ms that no start should pay

            self._shelf = SkillShelf(*self._made)
        return self._shelf.look(settings, agent_id, workspace)

    async def probe(self, settings: Settings, agents: Sequence[tuple[str, Path]]) -> list[Found]:
        """For `claw doctor`: a line for each agent (id and workspace) that has any."""
        from claw_engine.skills.status import probed  # only for whoever asks

        disk, rows = self._made[0], []
        for agent, workspace in agents:
            skills = await disk.run(self.look, settings, agent, workspace)
            rows += probed(agent, skills.verdicts)
        return rows
