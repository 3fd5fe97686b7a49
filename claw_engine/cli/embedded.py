"""An engine in this process for one turn of `claw agent`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path

from claw_engine.cli.agent import show_notices
from claw_engine.cli.output import note
from claw_engine.cli.turn import TurnPrinter
from claw_engine.client.base import Client, ClientError
from claw_engine.client.sync import CallFailed
from claw_engine.engine import Engine


def turn(where: Path, params: Mapping[str, object]) -> Mapping[str, object]:
    """The final answer of `agent`. Raises EngineHeld, CallFailed, KeyboardInterrupt."""
    return asyncio.run(_turn(where, params))


async def _turn(where: Path, params: Mapping[str, object]) -> Mapping[str, object]:
    async with Engine(where, mode="headless") as engine:
        client = engine.local_client(mode="cli")
        show_notices(await client.connect())
        printing = asyncio.create_task(_print(client, TurnPrinter(_run_id(params), where)))
        try:
            await client.call("trace.subscribe", {"sessionKey": params["sessionKey"]})
            return await _answer(client, params)
        finally:
            await client.close()
            await printing


async def _answer(client: Client, params: Mapping[str, object]) -> Mapping[str, object]:
    answer = asyncio.create_task(client.call("agent", params, timeout=None))
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupted.set)
    stop = asyncio.create_task(interrupted.wait())
    try:
        await asyncio.wait({answer, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            note("stopping the run")
            abort = {"sessionKey": params["sessionKey"], "runId": _run_id(params)}
            await client.call("chat.abort", abort)
            with contextlib.suppress(ClientError):
                await answer
            raise KeyboardInterrupt
        return await answer
    except ClientError as error:
        raise CallFailed(error.shape.to_json()) from None
    finally:
        stop.cancel()


async def _print(client: Client, printer: TurnPrinter) -> None:
    async for frame in client.events():
        printer.feed(frame.event, frame.payload)


def _run_id(params: Mapping[str, object]) -> str:
    return str(params["idempotencyKey"])
