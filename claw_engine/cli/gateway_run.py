"""`claw gateway run`: the engine without a console, until a signal or `engine.stop`."""

from __future__ import annotations

import asyncio
import os
import signal
from argparse import Namespace
from pathlib import Path

from claw_engine.cli.attach import state_dir_for_start
from claw_engine.cli.output import flush, note, say, say_error, say_json
from claw_engine.engine import Engine, EngineHeld
from claw_engine.gateway.web.bind import PortError


def run(args: Namespace) -> int:
    """0 after `engine.stop`, 128 + n after signal n, 1 when another engine holds the directory."""
    try:
        return asyncio.run(_run(state_dir_for_start(args), args.port, as_json=args.json))
    except (EngineHeld, PortError) as error:
        say_error(error, as_json=args.json)
        return 1


async def _run(where: Path, port: int | None, *, as_json: bool) -> int:
    got: list[int] = []
    engine = Engine(where, mode="headless", listen=True, port=port)
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        got.append(number)
        # A second one means it: back to what the system does with it.
        loop.remove_signal_handler(number)
        engine.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    # A closed terminal is no reason to stop: that is what headless means. A handler and not
    # SIG_IGN, which children would inherit.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    async with engine:
        ready = {
            "ready": True,
            "pid": os.getpid(),
            "door": str(engine.door_path),
            "port": engine.port,
            "stateDir": str(where),
        }
        if as_json:
            say_json(ready)
        else:
            say(
                f"engine ready: pid {os.getpid()}, port {engine.port}, door {engine.door_path}, "
                f"state {where}"
            )
            flush()
        await engine.wait_stopped()
        if got:
            note("stopping")
    return 128 + got[0] if got else 0
