"""`claw doctor`: what works on this machine and what stays open, as every room finds it.

Asks the running engine; without one it looks by itself at what needs no engine. With --fix it mends
file modes and settings that have one safe value first. Exit code 1 when a probe failed.
"""

from __future__ import annotations

import contextlib
import os
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import items
from claw_engine.client.door import NoEngine

_SIGNS = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}


def run(args: Namespace) -> int:
    done = _fix(args) if args.fix else None
    try:
        with client(args) as engine:
            found: Mapping[str, object] = {**engine.call("doctor.probes"), "engine": True}
    except NoEngine:
        found = {"probes": _alone(args), "engine": False}
    rows = items(found, "probes")
    if done is not None:
        found = {**found, "fixed": done}
    if args.json:
        say_json(found)
    else:
        for words in done or ():
            say(f"fixed  {one_line(words, 300)}")
        if done == []:
            say("Nothing was there to mend.")
        if not found["engine"]:
            say("No engine runs here; only what needs none was looked at.")
        for row in rows:
            sign = _SIGNS.get(str(row.get("health")), "?   ")
            text = one_line(str(row.get("text")), 400)
            say(f"{sign}  {row.get('room')}/{row.get('name')}: {text}")
            if row.get("hint") and row.get("health") != "ok":
                say(f"      {row['hint']}")
    return 1 if any(row.get("health") == "fail" for row in rows) else 0


def _fix(args: Namespace) -> list[str]:
    from claw_engine.audits import NothingToAudit  # the plain look needs none of this
    from claw_engine.cli.mend import mend
    from claw_engine.paths import StateDir

    try:
        return mend(StateDir(state_dir(args)))
    except NothingToAudit as error:
        return [f"NOT DONE: {error.sentence()}"]


def _alone(args: Namespace) -> list[Mapping[str, object]]:
    # Only here: with an engine the verb needs none of this.
    import asyncio
    from functools import partial

    from claw_engine.audits import NothingToAudit, subject_of
    from claw_engine.paths import StateDir
    from claw_engine.probes import Probes, to_wire
    from claw_engine.rooms import wishes_of
    from claw_engine.sandbox.boxes import Boxes
    from claw_engine.sandbox.keeper import Keeper
    from claw_engine.sandbox.report import look
    from claw_engine.storage.sqlite_driver import look as look_at_sqlite
    from claw_engine.tools.box_desk import boxes_of
    from claw_engine.world import real_world

    async def ask() -> list[Mapping[str, object]]:
        world, root = real_world(), state_dir(args)
        keeper = Keeper(world, root, os.environ)
        looks = partial(look, keeper)
        with contextlib.suppress(NothingToAudit):  # told by whoever starts an engine
            settings = subject_of(StateDir(root), os.environ, world.disk).settings
            keeper = Keeper(world, root, os.environ, wishes_of(settings))
            boxes = Boxes(world, root, os.environ, keeper)
            looks = partial(look, keeper, boxes, partial(boxes_of, settings))
        probes = Probes()
        probes.add("sandbox", looks)
        probes.add("trace", partial(look_at_sqlite, world))
        rows = to_wire(await probes.run())
        await keeper.close()
        return rows

    return asyncio.run(ask())
