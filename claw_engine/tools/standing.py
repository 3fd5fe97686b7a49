"""Finds out where a run's commands belong: its session's sandbox and what was granted to it.

Knows settings and the boxes; the session's own words are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from claw_engine.config.sections.box import BoxSettings, merged
from claw_engine.sandbox.box import Standing, is_boxed
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sessions.keyforms import main_key
from claw_engine.sessions.keys import normalise_agent_id
from claw_engine.tools.elevated import level

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

Entry = Callable[[str], Mapping[str, object]]
"""The fields of a session's entry; empty when it has none."""


class Standings:
    """`entry` tells the session's own words (`elevatedLevel`, `execHost`)."""

    def __init__(self, boxes: Boxes, entry: Entry) -> None:
        self._boxes = boxes
        self._entry = entry

    async def __call__(
        self,
        settings: Settings,
        *,
        session_key: str,
        agent_id: str,
        workspace: Path,
        source: str,
        extra: Mapping[str, object],
    ) -> Standing:
        """The standing of one run; its box has its workspace ready. Raises BoxBroken."""
        entry = self._entry(session_key)
        chosen = entry.get("elevatedLevel") or settings.agents.defaults.elevated_default
        granted = level(
            settings.tools.elevated, chosen=str(chosen), source=source, extra=extra
        )  # fmt: skip
        host = entry.get("execHost")
        standing = Standing(None, granted, str(host) if host else None)
        wanted = settings_of(settings, agent_id)
        if not is_boxed(wanted, session_key, str(main_key(normalise_agent_id(agent_id)))):
            return standing
        box = await self._boxes.of(
            wanted, session_key=session_key, agent_id=agent_id, workspace=workspace
        )
        await self._boxes.prepare(box)
        return Standing(box, standing.elevated, standing.exec_host)


def settings_of(settings: Settings, agent_id: str) -> BoxSettings:
    """The sandbox settings of an agent: its own over the defaults."""
    agent = normalise_agent_id(agent_id)
    own = next((e for e in settings.agents.list if normalise_agent_id(e.id) == agent), None)
    return merged(settings.agents.defaults.sandbox, own.sandbox if own is not None else None)
