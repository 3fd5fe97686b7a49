"""`claw security audit`: who could do what with this state directory, and mending the plain parts.

Asks the running engine; without one it looks by itself. Exit code 1 while something is critical.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import items
from claw_engine.client.door import NoEngine
from claw_engine.paths import StateDir


def run(args: Namespace) -> int:
    state = StateDir(state_dir(args))
    done = _fix(state) if args.fix else []
    probe: dict[str, object] = {"attempted": True, "url": f"unix:{state.door_sock}"}
    try:
        with client(args) as engine:
            found: dict[str, object] = dict(engine.call("security.audit"))
        probe["ok"] = True
    except NoEngine as error:
        found = _alone(state)
        probe |= {"ok": False, "error": error.title}
    if args.deep:
        found["deep"] = {"gateway": probe}
        if not probe["ok"]:
            _add_failure(found, str(probe["error"]))
    if args.fix:
        found["fixed"] = done
    if args.json:
        say_json(found)
    else:
        _show(found)
    summary = found.get("summary")
    return 1 if isinstance(summary, Mapping) and summary.get("critical") else 0


def _fix(state: StateDir) -> list[str]:
    from claw_engine.cli.mend import mend  # the plain audit needs none of this

    return mend(state)


def _alone(state: StateDir) -> dict[str, object]:
    # With an engine the verb needs none of this.
    import asyncio
    import time

    from claw_engine.audits import report, subject_of
    from claw_engine.rooms import wishes_of
    from claw_engine.sandbox.keeper import Keeper
    from claw_engine.world import real_world

    async def ask() -> dict[str, object]:
        world = real_world()
        subject = subject_of(state, os.environ, world.disk)
        keeper = Keeper(world, state.root, os.environ, wishes_of(subject.settings))
        await keeper.check()
        routes = (keeper.warning,) if keeper.warning else ()
        await keeper.close()
        subject = subject_of(state, os.environ, world.disk, routes)
        return report(subject, int(time.time() * 1000))

    return asyncio.run(ask())


def _add_failure(found: dict[str, object], error: str) -> None:
    rows = found.get("findings")
    summary = found.get("summary")
    row = {
        "checkId": "gateway.probe_failed",
        "severity": "warn",
        "title": "The gateway does not answer.",
        "detail": error,
        "remediation": "Start it (claw gateway run), or look at its log.",
    }
    found["findings"] = [*rows, row] if isinstance(rows, list) else [row]
    if isinstance(summary, dict):
        summary["warn"] = int(summary.get("warn", 0)) + 1


def _show(found: Mapping[str, object]) -> None:
    fixed = found.get("fixed")
    for words in fixed if isinstance(fixed, list) else ():
        say(f"fixed     {one_line(str(words), 300)}")
    for row in items(found, "findings"):
        severity = str(row.get("severity")).upper()
        say(f"{severity:<8}  {row.get('checkId')}: {one_line(str(row.get('title')), 300)}")
        say(f"          {one_line(str(row.get('detail')), 400)}")
        if row.get("remediation"):
            say(f"          {one_line(str(row['remediation']), 300)}")
    summary = found.get("summary")
    if isinstance(summary, Mapping):
        say(", ".join(f"{summary.get(name, 0)} {name}" for name in ("critical", "warn", "info")))
