"""Waits with a command for a run: to its end, to the run's, or until it goes to the background.

Knows processes, not approvals: whoever calls has decided that this may run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from claw_engine.runs import AbortScope
from claw_engine.tools.exec.job import Job, Ran
from claw_engine.tools.exec.running import Running, shielded, start
from claw_engine.world import World


async def run(world: World, job: Job, scope: AbortScope, emit: Callable[[str], None]) -> Ran:
    """Run `job` to its end; on a time limit, abort or cancellation stop all of its processes.

    Raises OSError when it cannot be started, and CancelledError (after the clean-up) when this
    task is cancelled.
    """
    running = await start(world, job, emit)
    ran = await attend(world, running, scope)
    assert ran is not None
    return ran


async def attend(
    world: World, running: Running, scope: AbortScope, yield_s: float | None = None
) -> Ran | None:
    """Its end; None when it still runs after `yield_s` seconds (None = wait for ever).

    An abort or a cancellation meanwhile stops it.
    """
    ended: asyncio.Future[object] = asyncio.ensure_future(running.wait())
    waits: list[asyncio.Future[object]] = [ended, asyncio.ensure_future(scope.wait())]
    if yield_s is not None:
        waits.append(asyncio.ensure_future(world.clock.sleep(yield_s)))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if scope.aborted and not ended.done():
            running.stop(scope.reason)
            await shielded(running.wait())
        return running.ran
    except asyncio.CancelledError:
        running.stop(scope.reason)
        await shielded(running.wait())
        raise
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
