"""`claw approvals`: what waits for an answer, and the answer, from any terminal."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import duration, items, number, part


def run(args: Namespace) -> int:
    with client(args) as engine:
        if args.action in (None, "list"):
            found = engine.call("exec.approval.list")
        else:
            found = engine.call("exec.approval.resolve", _decision(args))
    if args.json:
        say_json(found)
    elif args.action in (None, "list"):
        _show(found)
    else:
        record = part(found, "record")
        command = part(record, "request").get("command")
        say(f"{record.get('decision')}: {one_line(str(command))}")
    return 0


def _decision(args: Namespace) -> dict[str, object]:
    if args.action == "deny":
        return {"id": args.id, "decision": "deny", "reason": args.reason}
    return {"id": args.id, "decision": "allow-always" if args.always else "allow-once"}


def _show(found: Mapping[str, object]) -> None:
    now = int(time.time() * 1000)
    waiting = items(found, "approvals")
    if not waiting:
        say("Nothing waits for you.")
    for record in waiting:
        request = part(record, "request")
        left = duration(number(record, "expiresAtMs") - now)
        say(f"{str(record.get('id'))[:8]}  {request.get('kind')} in {request.get('sessionKey')}, "
            f"{left} left")  # fmt: skip
        say(f"  run  {one_line(str(request.get('command')), 2000)}")
        say(f"  in   {one_line(str(request.get('cwd')))}")
        if request.get("why"):
            say(f"  why  {one_line(str(request['why']))}")
        for segment in items(request, "segments"):
            say(f"       {one_line(str(segment.get('text')))}: {one_line(str(segment.get('why')))}")
