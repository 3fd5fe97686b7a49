"""`claw health`: does the engine answer."""

from __future__ import annotations

from argparse import Namespace

from claw_engine.cli.attach import client
from claw_engine.cli.output import say, say_json


def run(args: Namespace) -> int:
    with client(args, patience_s=5.0) as engine:
        found = engine.call("health")
    if args.json:
        say_json(found)
    else:
        say(f"ok: engine {found.get('version')}, pid {found.get('pid')}")
    return 0
