"""`claw approvals history`: who decided what and when, what ran, and how that ended."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import datetime

from claw_engine.cli.approvals import how, ran
from claw_engine.cli.attach import client
from claw_engine.cli.output import command_line, say, say_json
from claw_engine.cli.status import items, number, part


def run(args: Namespace) -> int:
    with client(args) as engine:
        found = engine.call("approval.history", {"limit": args.limit})
    if args.json:
        say_json(found)
    else:
        say("\n".join(rows(found)))
    return 0


def rows(found: Mapping[str, object]) -> Iterator[str]:
    """Two lines a request, the newest first."""
    entries = items(found, "entries")
    if not entries:
        yield "Nothing was decided yet."
    for record in entries:
        request = part(record, "request")
        at = datetime.fromtimestamp(number(record, "decidedAtMs") / 1000)
        told = "; ".join([how(record), *ran(record)])
        yield f"{at:%Y-%m-%d %H:%M:%S}  {str(record.get('id'))[:8]}  {told}"
        yield (
            f"  {request.get('kind')}  {command_line(str(request.get('command')), 2000)}"
            f"  [{request.get('sessionKey') or request.get('client')}]"
        )
