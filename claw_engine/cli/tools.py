"""`claw tools`: which tools an agent has, and which rule took one away."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import items


def run(args: Namespace) -> int:
    """`list` shows all, `explain NAME` one tool's way; exit code 0 also for a tool taken away."""
    params = {
        "name": getattr(args, "name", None),
        "agentId": args.agent,
        "sessionKey": args.session,
    }
    with client(args) as engine:
        found = engine.call("tools.explain", {k: v for k, v in params.items() if v is not None})
    if args.json:
        say_json(found)
        return 0
    rows = items(found, "tools")
    for row in rows:
        if params["name"] is not None:
            _one(row, found)
            continue
        sign = "yes" if row.get("allowed") else "no "
        why = "" if row.get("allowed") else f"{row.get('step')}: {row.get('rule')}"
        say(f"{sign}  {one_line(str(row.get('name')), 40):<18}  {one_line(why)}".rstrip())
    for warning in items(found, "warnings"):
        place, entry = warning.get("source"), warning.get("entry")
        say(one_line(f"warning: {place}: {entry!r}: {warning.get('text')}", 240))
    return 0


def _one(row: Mapping[str, object], found: Mapping[str, object]) -> None:
    say(one_line(str(row.get("sentence")), 300))
    about = f"agent {found.get('agentId')}, session {found.get('sessionKey')}"
    say("  " + one_line(f"{about}, model {found.get('model') or 'none'}"))
    for step in items(row, "steps"):
        sign = "passes " if step.get("passes") else "REMOVES"
        rule = f": {step.get('rule')}" if step.get("rule") else ""
        say(f"  {sign}  " + one_line(f"{step.get('step')} ({step.get('source')}){rule}", 240))
    if not items(row, "steps"):
        say("  no list in the configuration applies to it")
