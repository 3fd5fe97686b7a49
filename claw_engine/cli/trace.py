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
    """Nothing was recorded; `listed` is the answer of `trace.list`, which says why."""

    exit_code = 1

    def __init__(self, listed: Json) -> None:
        if listed.get("enabled"):
            title, hint = "No run is in the trace yet.", "The next run will be: send a message."
        else:
            title = f"No run is in the trace, and none is recorded now: {_why(listed)}."
            hint = "claw doctor says more."
        super().__init__(title, hint=hint)


def run(args: Namespace) -> int:
    if args.action == "export":
        from claw_engine.cli.trace_export import export  # the other verbs need none of it

        return export(args)
    with client(args) as engine:
        if args.action == "show":
            run_id = args.run
            if run_id is None:
                listed = engine.call("trace.list", {"limit": 1})
                run_id = next((row.get("id") for row in items(listed, "runs")), None)
                if run_id is None:
                    raise NoRun(listed)
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
    cells = [
        [
            str(row.get("id")),
            f"{duration(now - number(row, 'startedMs'))} ago",
            str(row.get("status")),
            *_counted(number(row, "calls"), "call"),
            *_counted(number(row, "tools"), "tool"),
            *_counted(number(row, "estimatedTokens"), "token"),
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, line in zip(rows, cells, strict=True):
        laid = [
            f"{cell:>{width}}" if place in NUMBERS else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        say(f"{' '.join(laid)}  {one_line(str(row.get('title')), 40)}".rstrip())
    if not rows:
        say("No run is recorded.")
    if not found.get("enabled"):
        say(f"Nothing is recorded now: {_why(found)}.")


def _why(listed: Json) -> str:
    why = listed.get("why")  # an engine of an earlier version does not say it
    return str(why).rstrip(".") if why else "claw.trace.enabled is off, or recording has failed"


NUMBERS = (3, 5, 7)
"""Columns of the list that stand to the right."""


def _counted(count: int, noun: str) -> tuple[str, str]:
    """`1`, `call`; `2`, `calls`."""
    return f"{count:,}", noun if count == 1 else f"{noun}s"


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
