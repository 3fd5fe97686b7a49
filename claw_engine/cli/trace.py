"""`claw trace`: runs that were recorded; one run as a tree; a run as a file."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import duration, items, number, part
from claw_engine.errors import ClawError

Json = Mapping[str, object]


class NoRun(ClawError):
    """Nothing was recorded."""

    exit_code = 1

    def __init__(self) -> None:
        super().__init__("No run is in the trace.", hint="claw.trace.enabled switches it on.")


def run(args: Namespace) -> int:
    if args.action == "export":
        from claw_engine.cli.trace_export import export  # the other verbs need none of it

        return export(args)
    with client(args) as engine:
        if args.action == "show":
            run_id = args.run
            if run_id is None:
                newest = items(engine.call("trace.list", {"limit": 1}), "runs")
                run_id = next((row.get("id") for row in newest), None)
                if run_id is None:
                    raise NoRun
            found = engine.call("trace.run", {"runId": run_id})
        else:
            which: dict[str, object] = {"limit": args.limit}
            if args.session:
                which["sessionKey"] = args.session
            found = engine.call("trace.list", which)
    if args.json:
        say_json(found)
    elif args.action == "show":
        _tree(found)
    else:
        _list(found)
    return 0


def _list(found: Json) -> None:
    now = int(time.time() * 1000)
    rows = items(found, "runs")
    for row in rows:
        age = duration(now - number(row, "startedMs"))
        tokens = number(row, "estimatedTokens")
        what = one_line(str(row.get("title")), 40)
        say(f"{row.get('id')!s:<36} {age + ' ago':<12} {row.get('status')!s:<11} "
            f"{number(row, 'calls'):>3} calls {number(row, 'tools'):>3} tools {tokens:>8} tokens  "
            f"{what}".rstrip())  # fmt: skip
    if not rows:
        say("No run is recorded.")
    if not found.get("enabled"):
        say("Nothing is recorded now: claw.trace.enabled is off, or recording has failed.")


def _tree(found: Json) -> None:
    row = part(found, "run")
    began = number(row, "startedMs")
    say(f"{row.get('id')}  {row.get('sessionKey')}  {row.get('status')}  {row.get('model')}")
    say(f"  {one_line(str(row.get('title')), 100)}")
    entries = [(number(call, "startedMs"), 0, call) for call in items(found, "calls")]
    entries += [(number(tool, "startedMs"), 1, tool) for tool in items(found, "tools")]
    for started, kind, entry in sorted(entries, key=lambda found: found[:2]):
        at = f"+{(started - began) / 1000:.1f}s"
        took = _took(number(entry, "endedMs") - started) if entry.get("endedMs") else "?"
        if kind == 0:
            usage = part(entry, "usage")
            out = f", {usage.get('output')} out" if usage else ""
            told = f"{entry.get('tokens')} tokens in ({entry.get('basis')}){out}"
            say(f"  {at:>9}  call {entry.get('id')}  {entry.get('cause')}  {told}  {took}  "
                f"{entry.get('status')}")  # fmt: skip
        else:
            code = entry.get("exitCode")
            said = f", exit {code}" if code is not None else ""
            say(f"  {at:>9}    tool {entry.get('name')}  {entry.get('status')}{said}  {took}")
    if row.get("error"):
        say(f"  {row.get('error')}")


def _took(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else duration(ms)
