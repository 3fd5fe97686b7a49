"""`claw gateway run`: the engine without a console, until a signal or `engine.stop`.

A restart (SIGUSR1, `claw gateway restart`, a change of the configuration) is the next engine in the
same process: what waits is in the journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from argparse import Namespace
from pathlib import Path

from claw_engine.cli.attach import state_dir_for_start
from claw_engine.cli.output import flush, note, say, say_error, say_json
from claw_engine.engine import Engine, EngineHeld
from claw_engine.gateway.web.bind import PortError
from claw_engine.restarts import Restarts
from claw_engine.world import RealClock


def run(args: Namespace) -> int:
    """0 after `engine.stop`, 128 + n after signal n, 1 when another engine holds the directory."""
    try:
        return asyncio.run(_Runner(state_dir_for_start(args), args.port, args.json).run())
    except (EngineHeld, PortError) as error:
        say_error(error, as_json=args.json)
        return 1


class _Runner:
    """Engines one after another, until one ends for good."""

    def __init__(self, where: Path, port: int | None, as_json: bool) -> None:
        self._where = where
        self._port = port
        self._as_json = as_json
        self._restarts = Restarts(RealClock())
        self._got: list[int] = []
        self._engine: Engine | None = None
        self._ready = False

    async def run(self) -> int:
        self._follow_signals()
        last: int | None = None
        while True:
            async with contextlib.AsyncExitStack() as stack:
                engine = await self._entered(stack, last)
                self._ready = True
                if self._got:  # while it was not ready to hear it
                    engine.stop()
                self._say_ready(engine)
                await engine.wait_stopped()
                self._ready = False
                if self._got:
                    note("stopping")
            last = engine.port
            if self._got or not engine.restarting:
                break
            note("restarting")
        return 128 + self._got[0] if self._got else 0

    async def _entered(self, stack: contextlib.AsyncExitStack, last: int | None) -> Engine:
        """The next engine, started. After a restart a port that was chosen by the system stays, as
        clients come back to it, and so does one whose successor cannot be had."""
        named = last if last is not None and self._port == 0 else self._port
        self._engine = self._made(named)
        try:
            return await stack.enter_async_context(self._engine)
        except PortError as error:
            if last is None or named == last:
                raise
            self._engine = self._made(last)
            engine = await stack.enter_async_context(self._engine)
            engine.board.tell(
                "port", "error", f"The new port cannot be used, so it is still {last}.",
                text=error.title, hint=error.hint, sticky=True,
            )  # fmt: skip
            return engine

    def _made(self, port: int | None) -> Engine:
        return Engine(self._where, mode="headless", listen=True, port=port, restarts=self._restarts)

    def _follow_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGUSR1, self._restart)
        # A closed terminal is no reason to stop: that is what headless means. A handler and not
        # SIG_IGN, which children would inherit.
        loop.add_signal_handler(signal.SIGHUP, lambda: None)

    def _stop(self, number: signal.Signals) -> None:
        self._got.append(number)
        # A second one means it: back to what the system does with it.
        asyncio.get_running_loop().remove_signal_handler(number)
        if self._engine is not None:
            self._engine.stop()

    def _restart(self) -> None:
        engine = self._engine
        if engine is None or not self._ready:
            return
        if not engine.settings().commands.restart:
            engine.board.tell(
                "restart-refused", "warn", "A restart was asked for by signal and refused.",
                hint="commands.restart is false in the configuration.",
            )  # fmt: skip
            return
        engine.restart("SIGUSR1")

    def _say_ready(self, engine: Engine) -> None:
        ready = {
            "ready": True,
            "pid": os.getpid(),
            "door": str(engine.door_path),
            "port": engine.port,
            "stateDir": str(self._where),
        }
        if self._as_json:
            say_json(ready)
            return
        say(
            f"engine ready: pid {os.getpid()}, port {engine.port}, door {engine.door_path}, "
            f"state {self._where}"
        )
        flush()
