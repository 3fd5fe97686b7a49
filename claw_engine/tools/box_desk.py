"""What the operator can see and do about sandboxes: list, explain, make anew.

Knows settings, boxes and session keys; no wire and no terminal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from claw_engine.errors import InvalidRequest
from claw_engine.sandbox.box import Backend, is_boxed, scope_of
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sessions.keyforms import main_key
from claw_engine.sessions.routing import routes_of
from claw_engine.tools.elevated import level
from claw_engine.tools.standing import Entry, settings_of

if TYPE_CHECKING:
    from claw_engine.config.sections.box import BoxSettings
    from claw_engine.config.settings import Settings


log = logging.getLogger("claw.sandbox")


class BoxDesk:
    """`workspace` tells an agent's own working folder."""

    def __init__(
        self,
        boxes: Boxes,
        settings: Callable[[], Settings],
        workspace: Callable[[str], Path],
        entry: Entry,
    ) -> None:
        self._boxes = boxes
        self._settings = settings
        self._workspace = workspace
        self._entry = entry

    def agents(self) -> Mapping[str, BoxSettings]:
        """The sandbox settings of every agent, the default one first."""
        return boxes_of(self._settings())

    async def doubts(self) -> Mapping[str, str]:
        """Agents whose sandbox cannot be had, with the reason; what others got is logged."""
        wrong = {}
        for agent, wanted in self.agents().items():
            if wanted.mode == "off":
                continue
            box = await self._boxes.of(
                wanted, session_key=str(main_key(agent)), agent_id=agent,
                workspace=self._workspace(agent),
            )  # fmt: skip
            if box.backend is None:
                wrong[agent] = box.broken
            else:
                log.info("sandbox of agent %s (%s): %s", agent, wanted.mode, box.backend.value)
        return wrong

    async def rows(self) -> Sequence[Mapping[str, object]]:
        """Every container we made, newest use first, with `running` null for one that is gone."""
        containers = self._boxes.containers
        return [
            {**entry.to_json(), "running": await containers.running(entry.engine, entry.name)}
            for entry in await containers.rows()
        ]

    async def explain(self, session_key: str) -> Mapping[str, object]:
        """Where commands of a session run, and why. Raises ClawError for a wrong key."""
        settings = self._settings()
        key = routes_of(settings).request_key(session_key)
        wanted = settings_of(settings, key.agent_id)
        boxed = is_boxed(wanted, str(key), str(main_key(key.agent_id)))
        entry = self._entry(str(key))
        chosen = str(entry.get("elevatedLevel") or settings.agents.defaults.elevated_default)
        elevated = settings.tools.elevated
        found: dict[str, object] = {
            "sessionKey": str(key),
            "agentId": key.agent_id,
            "sandboxed": boxed,
            "mode": wanted.mode,
            "execHost": entry.get("execHost") or settings.tools.exec.host,
            "confined": await self._confined(),
            "elevated": {
                "enabled": elevated.enabled,
                "level": level(elevated, chosen=chosen, source="console", extra={}),
                "allowFrom": {name: list(who) for name, who in elevated.allow_from.items()},
            },
        }
        if boxed:
            box = await self._boxes.of(
                wanted, session_key=str(key), agent_id=key.agent_id,
                workspace=self._workspace(key.agent_id),
            )  # fmt: skip
            docker = box.backend is Backend.DOCKER
            found |= {
                "scope": scope_of(wanted),
                "key": box.key,
                "backend": box.backend.value if box.backend else None,
                "broken": box.broken,
                "asks": not await self._boxes.tight(box),
                "workspaceAccess": box.access.value,
                "workspace": box.workspace,
                "agentWorkspace": box.agent_workspace,
                "workdir": box.workdir,
                "container": box.name if docker else None,
                "image": wanted.docker.image if docker else None,
                "network": wanted.docker.network,
            }
        return found

    async def _confined(self) -> Mapping[str, object]:
        """What closes the ways past the approvals for a command outside every box."""
        keeper = self._boxes.keeper
        await keeper.check()
        warning = await asyncio.to_thread(lambda: keeper.warning)
        return {"backend": keeper.name if keeper.confines else None, "warning": warning}

    async def recreate(
        self, *, session_key: str | None, agent_id: str | None, everything: bool
    ) -> Sequence[str]:
        """Throw containers away; each is made anew when it is needed. Names of those.

        Raises InvalidRequest when nothing is named, ContainerFailed.
        """
        if not (session_key or agent_id or everything):
            raise InvalidRequest("Say which: all, a session or an agent.")
        keys: set[str] = set()
        if session_key:
            found = await self.explain(session_key)
            keys.add(str(found.get("key", session_key)))
        gone = []
        for entry in await self._boxes.containers.rows():
            of_agent = agent_id and (
                entry.key.startswith(f"agent:{agent_id}:")
                or entry.key in (f"agent:{agent_id}", f"shared:{agent_id}")
            )
            if everything or of_agent or entry.key in keys:
                await self._boxes.containers.remove(entry.name, entry.engine)
                gone.append(entry.name)
        return gone


def boxes_of(settings: Settings) -> Mapping[str, BoxSettings]:
    """The sandbox settings of every agent, the default one first."""
    routes = routes_of(settings)
    names = dict.fromkeys((routes.default_agent, *routes.agents))
    return {agent: settings_of(settings, agent) for agent in names}
