"""`claw mode`: what the agent may do without asking, and switching it, from any terminal."""

from __future__ import annotations

import time
from argparse import Namespace

from claw_engine.cli.attach import client
from claw_engine.cli.output import say, say_json
from claw_engine.cli.status import duration, number


def run(args: Namespace) -> int:
    with client(args) as engine:
        if args.name is None:
            found = engine.call("permission.get")
        else:
            params: dict[str, object] = {"mode": args.name}
            if args.minutes is not None:
                params["ttlMs"] = args.minutes * 60_000
            found = engine.call("permission.set", params)
    if args.json:
        say_json(found)
        return 0
    until = number(found, "fullUntilMs")
    left = f", {duration(until - int(time.time() * 1000))} left" if until else ""
    say(f"{found.get('mode')}{left}")
    if found.get("bypassWarning"):
        say(str(found["bypassWarning"]))
    return 0
