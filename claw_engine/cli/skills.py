"""`claw skills`: which there are, which the model is shown, and why one is not."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import items
from claw_engine.errors import InvalidRequest

Json = Mapping[str, object]


def run(args: Namespace) -> int:
    """`list`, `info NAME`, `enable` and `disable NAME`."""
    action = args.action or "list"
    agent = getattr(args, "agent", None)
    params = {"agentId": agent} if agent is not None else {}
    with client(args) as engine:
        found: Json = engine.call("skills.status", params)
        if action in ("enable", "disable"):
            row = _named(found, args.name)
            change = {"skillKey": row["skillKey"], "enabled": action == "enable"}
            found = engine.call("skills.update", change)
            if not args.json:
                say(f"{one_line(str(row['name']))}: {action}d; it counts from the next run on.")
                return 0
    if action == "info":
        found = _named(found, args.name)
    if args.json:
        say_json(found)
    elif action == "info":
        _info(found)
    else:
        _list(found)
    return 0


def _named(found: Json, name: str) -> Json:
    """The skill of that name or key that counts, else one that does not. Raises InvalidRequest."""
    rows = [row for row in items(found, "skills") if name in (row.get("name"), row.get("skillKey"))]
    if not rows:
        raise InvalidRequest(f"There is no skill {name!r}.", hint="claw skills list shows all.")
    return next((row for row in rows if row.get("eligible")), rows[0])


def _list(found: Json) -> None:
    rows = items(found, "skills")
    if not rows:
        say(f"No skills. They go into {found.get('workspaceDir')}/skills/NAME/SKILL.md, for all")
        say(f"agents into {found.get('managedSkillsDir')}/NAME/SKILL.md.")
    for row in rows:
        sign = "yes" if row.get("listed") else "no "
        text = row.get("description") if row.get("listed") else row.get("reason")
        name = one_line(str(row.get("name")), 28)
        say(f"{sign}  {name:<20}  {one_line(str(text), 120)}".rstrip())
        for warning in _texts(row, "warnings"):
            say("     " + one_line(f"note: {warning}", 200))


def _info(row: Json) -> None:
    say(f"{one_line(str(row.get('name')))}  ({row.get('source')})")
    say("  " + one_line(str(row.get("description") or "no description"), 300))
    say("  file     " + one_line(str(row.get("filePath")), 300))
    shown = "yes" if row.get("listed") else one_line(f"no: {row.get('reason')}", 300)
    say(f"  shown    {shown}")
    for title, field in (("needs", "requirements"), ("missing", "missing")):
        needs = row.get(field)
        said = [
            f"{name} {', '.join(map(str, wanted))}"
            for name, wanted in (needs.items() if isinstance(needs, dict) else ())
            if wanted
        ]
        if said:
            say(f"  {title:<8} " + one_line("; ".join(said), 300))
    if row.get("homepage"):
        say("  see      " + one_line(str(row["homepage"]), 300))
    for warning in _texts(row, "warnings"):
        say("  note     " + one_line(warning, 300))


def _texts(row: Json, field: str) -> list[str]:
    value = row.get(field)
    return [str(text) for text in value] if isinstance(value, list) else []
