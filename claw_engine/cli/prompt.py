"""`claw prompt`: one request to a model, part by part; what changed between two."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import items, number, part

if TYPE_CHECKING:
    from claw_engine.client.sync import SyncClient

Json = Mapping[str, object]

ROW = ("name", "kind", "source", "bytes", "tokens", "cached")
"""What `--json` tells of a part."""


def run(args: Namespace) -> int:
    with client(args) as engine:
        if args.action == "diff":
            return _diff(engine, args)
        which = {"callId": args.call} if args.call else {}
        if args.session:
            which["sessionKey"] = args.session
        found = engine.call("trace.call", which)
        if args.part:
            return _text(engine, str(part(found, "call").get("id")), args)
    if args.json:
        say_json(request_json(found))
    else:
        _show(found)
    return 0


def request_json(found: Json) -> dict[str, object]:
    """A request as `--json` tells it: parts in wire order, the envelope last."""
    call = part(found, "call")
    return {
        "call": call.get("id"),
        "bytes": found.get("bytes"),
        "tokens": found.get("tokens"),
        "basis": call.get("basis"),
        "model": call.get("model"),
        "cause": call.get("cause"),
        "parts": [{name: row.get(name) for name in ROW} for row in items(found, "parts")],
    }


def _show(found: Json) -> None:
    call, total = part(found, "call"), number(found, "bytes")
    say(f"call     {call.get('id')} ({call.get('cause')}, {call.get('status')})")
    say(f"model    {call.get('model')}")
    say(f"request  {total} bytes, {found.get('tokens')} tokens ({call.get('basis')})")
    usage = call.get("usage")
    if isinstance(usage, dict):
        said = ", ".join(f"{name} {count}" for name, count in usage.items())
        say(f"counted  {said}")
    grown = items(found, "growth")
    if grown:
        words = "; ".join(f"{g.get('label')} {number(g, 'tokens'):+d}" for g in list(grown)[:4])
        say(f"changed  {one_line(words, 120)}")
    say("")
    say("   bytes     %  tokens  new cached  kind          part")
    for place, row in enumerate(items(found, "parts")):
        size = number(row, "bytes")
        share = 100 * size / total if total else 0.0
        new = "new" if row.get("isNew") else ""
        cached = "yes" if row.get("cached") else ""
        broke = "  <- the cache breaks here" if place == found.get("cacheBreak") else ""
        name = one_line(str(row.get("name") or row.get("source")), 48)
        say(f"{size:>8} {share:>5.1f} {number(row, 'tokens'):>7}  {new:<3} {cached:<6}  "
            f"{row.get('kind')!s:<12}  {name}{broke}")  # fmt: skip


def _text(engine: SyncClient, call_id: str, args: Namespace) -> int:
    """One part's text, all of it."""
    pieces: list[str] = []
    offset: object = 0
    while isinstance(offset, int):
        found = engine.call(
            "trace.part", {"callId": call_id, "partId": args.part, "offset": offset}
        )
        pieces.append(str(found.get("text")))
        offset = found.get("next")
    if args.json:
        say_json({**found, "text": "".join(pieces), "offset": 0, "next": None})
    else:
        say("".join(pieces))
    return 0


def _diff(engine: SyncClient, args: Namespace) -> int:
    """By default the last call against the one before it."""
    one, two = args.a, args.b
    if two is None:
        which = {"callId": one} if one else {"sessionKey": args.session} if args.session else {}
        found = engine.call("trace.call", which)
        two = str(part(found, "call").get("id"))
        one = part(found, "previous").get("id")
        if one is None:
            say(f"{two} is the first call of its session: there is nothing to compare it with.")
            return 1
    found = engine.call("trace.compare", {"a": one, "b": two})
    if args.json:
        say_json(found)
        return 0
    say(f"{one} -> {two}: {number(found, 'bytes'):+d} bytes, {number(found, 'tokens'):+d} tokens")
    for pair in items(found, "parts"):
        if pair.get("state") == "same":
            continue
        before, after = part(pair, "a"), part(pair, "b")
        shown = after or before
        change = number(after, "tokens") - number(before, "tokens")
        say(f"{pair.get('state'):<8} {change:>+8d}  {shown.get('kind')!s:<12} "
            f"{one_line(str(shown.get('name')), 48)} ({shown.get('id')})")  # fmt: skip
        for line in items(pair, "lines"):
            say(f"    {line.get('op')} {line.get('text')}")
    if found.get("truncated"):
        say("More lines differ than are shown.")
    return 0
