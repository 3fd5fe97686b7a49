"""The trace room of one engine put together: who records, who answers, and the worker process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from claw_engine.config.redact import NewestRedactor
from claw_engine.config.settings import Settings
from claw_engine.paths import StateDir
from claw_engine.trace.recorder import Recorder, Tell
from claw_engine.world import World

if TYPE_CHECKING:
    from claw_engine.trace.desk import TraceDesk
    from claw_engine.worker import Worker


class Tracing:
    """Use: `recorder` at once, `desk()` when somebody asks, …, `await close()`."""

    def __init__(
        self, world: World, state: StateDir, tell: Tell, settings: Callable[[], Settings]
    ) -> None:
        self._world = world
        self._settings = settings
        self._desk: TraceDesk | None = None
        self._worker: Worker | None = None
        self.recorder = Recorder(world, state.trace_db, tell, settings().trace)

    def desk(self) -> TraceDesk:
        """Whoever answers questions about what was recorded."""
        if self._desk is None:
            from claw_engine.trace.desk import TraceDesk  # no part of a start
            from claw_engine.worker import Worker

            self._worker = Worker(self._world)
            self._desk = TraceDesk(self.recorder, self._worker, NewestRedactor(self._settings))
        return self._desk

    async def close(self) -> None:
        """Write the rest and let the worker process go."""
        await self.recorder.close()
        if self._worker is not None:
            await self._worker.close()
