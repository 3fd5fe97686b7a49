"""What happens when the configuration has changed: sorted by the rules, applied, told.

The same for an edit in the file and for one that a client made.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from claw_engine.config.load import ConfigStore, Reloaded
from claw_engine.config.problems import KeyPath, format_path
from claw_engine.config.settings import Settings
from claw_engine.notices import NoticeBoard, problem_notices

log = logging.getLogger("claw.engine")

APPLIED = "config-changed"
WAITING = "config-waits"
_SHOWN = 6
RESTART_DELAY_MS = 1000
"""More edits often follow the first, and whoever made it should get an answer."""


class Host(Protocol):
    """What reloading needs of the engine."""

    board: NoticeBoard

    @property
    def config(self) -> ConfigStore: ...
    @property
    def restartable(self) -> bool: ...
    def apply(self, settings: Settings) -> None: ...
    def restart(self, reason: str, delay_ms: int = 0) -> Mapping[str, object]: ...


class Reloading:
    """Use: `begin()` once the start's own problems are told, then `changed()` for every edit."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._problems: set[str] = set()
        self._waiting: dict[KeyPath, None] = {}

    def begin(self) -> None:
        self._problems = set(self._host.board.codes())

    @property
    def waits(self) -> str:
        """Names of settings that are not in force yet."""
        return _names(tuple(self._waiting))

    async def changed(self) -> None:
        """The files may have changed: read them."""
        self.settle(await self._host.config.reload())

    def settle(self, outcome: Reloaded, *, restarts: bool = True) -> None:
        """Apply and tell what came of a reload. Without `restarts` another will restart anyway."""
        host = self._host
        notices = list(problem_notices(outcome.loaded))
        for code in self._problems - {notice.code for notice in notices}:
            host.board.clear(code)
        self._problems = {notice.code for notice in notices}
        for notice in notices:
            host.board.publish(notice)
        if outcome.swapped:
            host.apply(outcome.loaded.settings)
            log.info("config reloaded: generation=%d", outcome.loaded.settings.generation)
        if outcome.plan is not None:
            self._tell(outcome, restarts=restarts)

    def _tell(self, outcome: Reloaded, *, restarts: bool) -> None:
        host, found = self._host, outcome.plan
        assert found is not None  # asked before
        if found.applied or not outcome.changed:
            host.board.tell(
                APPLIED, "info", f"Configuration changed: {_names(found.applied) or 'the file'}.",
                hint="It applies to the next run.",
            )  # fmt: skip
        if not found.waiting:
            return
        self._waiting |= dict.fromkeys(found.waiting)
        names = self.waits
        log.info("config waits: mode=%s paths=%s", found.mode, names)
        title = f"Not in force yet: {names}."
        if found.restart and host.restartable:
            hint = "The engine restarts when runs have ended."
            host.board.tell(WAITING, "info", title, hint=hint, sticky=True)
            if restarts:
                host.restart(f"config changed: {names}", RESTART_DELAY_MS)
            return
        why = f"gateway.reload.mode is {found.mode}" if not found.restart else "a console runs it"
        host.board.tell(
            WAITING, "warn", title, text=f"The engine does not restart by itself: {why}.",
            hint="It takes effect at the next start (claw gateway restart).", sticky=True,
        )  # fmt: skip


def _names(paths: tuple[KeyPath, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(format_path(path) for path in paths[:_SHOWN]) + more
