"""One engine that is meant to die: `python -m bench.soak.child` forks one for each line it reads.

Importing the engine costs more than a kill, so this process imports it once and forks. It reads
JSON lines `{"state", "plan": {"pattern", "nth", "cut"} | null}` and writes `{"pid"}`, then from
the child `{"ready"}`, and at last `{"exit"}` with the return code (negative = signal).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from claw_engine.engine import Engine
from claw_engine.world import RealClock, RealIds, World, real_world
from tests.support.crash_disk import KillingDisk, KillingSpawn, KillPlan
from tests.support.engines import PLAIN_ENV

FAILED_TO_START = 70


def main() -> None:
    if len(sys.argv) > 1:  # one engine by hand: STATE [PATTERN NTH [CUT]]
        sys.exit(_child(sys.argv[1], _plan_of(sys.argv[2:])))
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            plan = order["plan"]
            code = _child(order["state"], KillPlan(**plan) if plan is not None else None)
            os._exit(code)
        _say({"pid": pid})
        _, status = os.waitpid(pid, 0)
        _say({"exit": os.waitstatus_to_exitcode(status)})


def _plan_of(args: list[str]) -> KillPlan | None:
    if len(args) < 2:
        return None
    return KillPlan(args[0], int(args[1]), float(args[2]) if len(args) > 2 else 0.5)


def _child(state: str, plan: KillPlan | None) -> int:
    try:
        asyncio.run(_live(Path(state), plan))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        return FAILED_TO_START
    return 0


async def _live(state: Path, plan: KillPlan | None) -> None:
    world = real_world()
    if plan is not None:
        world = World(RealClock(), RealIds(), KillingDisk(plan), KillingSpawn(plan))
    env = {**PLAIN_ENV, "HOME": str(state)}
    async with Engine(state, mode="headless", env=env, world=world, drain_s=0.0) as engine:
        _say({"ready": os.getpid()})
        await engine.wait_stopped()


def _say(what: dict[str, int]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()
