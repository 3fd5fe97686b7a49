"""`claw approvals rules` and `undo`: what runs unasked, when it was used last, and taking it
back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import datetime

from claw_engine.cli.attach import client
from claw_engine.cli.output import command_line, one_line, say, say_json
from claw_engine.cli.status import items, number, part
from claw_engine.errors import ClawError

Json = Mapping[str, object]


class NoSuchRule(ClawError):
    """What was typed names no rule and no grant, or more than one."""

    exit_code = 1


def run(args: Namespace) -> int:
    with client(args) as engine:
        found: Json = engine.call("exec.approvals.rules")
        if args.action == "undo":
            found = engine.call("exec.approvals.remove", {"id": _whole(found, args.id)})
    if args.json:
        say_json(found)
    elif args.action == "undo":
        gone = part(found, "rule") or part(found, "grant")
        say(f"taken back: {what(gone)}")
    else:
        say("\n".join(rows(found)))
    return 0


def rows(found: Json) -> Iterator[str]:
    """Rules and grants, two lines each."""
    rules, grants = items(found, "rules"), items(found, "grants")
    if not rules and not grants:
        yield "Nothing runs unasked."
    for rule in rules:
        bound = ", this content only" if rule.get("bound") else ""
        yield f"{_id(rule)}  rule   {what(rule)}  [agent {rule.get('agentId')}{bound}]"
        yield f"  {_last_use(rule)}"
    for grant in grants:
        until = _at(grant, "untilMs") or "it is taken back"
        where = grant.get("sessionKey") or f"agent {grant.get('agentId')}"
        yield f"{_id(grant)}  grant  {what(grant)}  [{where}, until {until}]"
        yield f"  {_last_use(grant)}, {number(grant, 'uses')} uses"


def what(row: Json) -> str:
    """What a rule or a grant lets through."""
    if "pattern" in row:
        return one_line(str(row.get("label") or row["pattern"]), 2000)
    programs = row.get("programs")
    if row.get("covers") == "programs" and isinstance(programs, list):
        return f"{one_line(', '.join(map(str, programs)), 2000)} with any arguments"
    command, cwd = (command_line(str(row.get(key)), 2000) for key in ("command", "cwd"))
    return f"exactly {command} in {cwd}"


def _last_use(row: Json) -> str:
    at = _at(row, "lastUsedAt")
    command = row.get("lastUsedCommand")
    return f"last used {at}: {command_line(str(command), 160)}" if at else "never used"


def _at(row: Json, key: str) -> str:
    ms = number(row, key)
    return f"{datetime.fromtimestamp(ms / 1000):%Y-%m-%d %H:%M}" if ms else ""


def _id(row: Json) -> str:
    return str(row.get("id"))[:8]


def _whole(found: Json, typed: str) -> str:
    """The id of the rule or grant that begins like `typed`. Raises NoSuchRule."""
    ids = [str(row.get("id")) for row in items(found, "rules") + items(found, "grants")]
    fits = [one for one in ids if one == typed] or [one for one in ids if one.startswith(typed)]
    if len(fits) != 1:
        why = "fits more than one" if fits else "is no rule and no grant"
        raise NoSuchRule(f"{typed} {why}.", hint="claw approvals rules lists them.")
    return fits[0]
