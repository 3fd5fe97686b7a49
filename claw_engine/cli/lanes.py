"""`claw lanes`: what runs and waits, and the operator's hand on it, from any terminal."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import duration, items, number

Json = Mapping[str, object]

_METHODS = {
    "status": "lanes.status",
    "pause": "lanes.pause",
    "resume": "lanes.resume",
    "width": "lanes.configure",
    "drop": "lanes.drop",
    "move": "lanes.move",
}


def run(args: Namespace) -> int:
    action = args.action or "status"
    with client(args) as engine:
        found = engine.call(_METHODS[action], _params(args, action))
    if args.json:
        say_json(found)
    elif action == "status":
        _show(found, int(time.time() * 1000))
    else:
        say(_done(action, found))
    return 0


def _params(args: Namespace, action: str) -> dict[str, object]:
    match action:
        case "width":
            return {"lane": args.lane, "width": args.width}
        case "drop":
            return {"runId": args.run}
        case "move":
            return {"runId": args.run, "position": args.position}
        case _:
            return {}


def _done(action: str, found: Json) -> str:
    match action:
        case "pause":
            return "Paused: nothing new starts until claw lanes resume."
        case "resume":
            return "Running again."
        case "width":
            return f"Lane {found.get('lane')} is {found.get('width')} wide."
        case "drop":
            return f"Dropped {found.get('runId')}; its sender was told."
        case _:
            return f"{found.get('runId')} now waits at position {found.get('position')}."


def _show(found: Json, now_ms: int) -> None:
    if found.get("paused"):
        say("PAUSED: nothing new starts.")
    for lane in items(found, "lanes"):
        say(
            f"{lane.get('lane')!s:<9} {number(lane, 'active')}/{number(lane, 'width')} active, "
            f"{number(lane, 'queued')} queued, {number(lane, 'parked')} waiting for you, "
            f"last wait {duration(number(lane, 'lastWaitMs'))}"
        )
    for row in items(found, "runs"):
        since = duration(now_ms - number(row, "sinceMs"))
        behind = row.get("waitingBehind")
        ahead = f", behind {behind[-1]}" if isinstance(behind, list) and behind else ""
        say(
            f"  {row.get('state')!s:<13} {since:<10} {one_line(str(row.get('sessionKey')))} "
            f"{row.get('runId')}{ahead}"
        )
