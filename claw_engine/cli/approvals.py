"""`claw approvals list|show|approve|deny`: what waits for an answer, and the answer, from any
terminal."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import command_line, one_line, say, say_json, visible
from claw_engine.cli.status import duration, items, number, part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from claw_engine.client.sync import SyncClient

Json = Mapping[str, object]


def run(args: Namespace) -> int:
    with client(args) as engine:
        match args.action:
            case "approve" | "allow" | "deny":
                return _decide(engine, args)
            case "show":
                found = engine.call("exec.approval.get", {"id": args.id})
                text = "\n".join(card(found, int(time.time() * 1000)))
            case _:
                found = engine.call("exec.approval.list")
                text = "\n".join(waiting(found, int(time.time() * 1000)))
    if args.json:
        say_json(found)
    else:
        say(text)
    return 0


def _decide(engine: SyncClient, args: Namespace) -> int:
    params = decision(args)
    if len(args.ids) == 1:
        found = engine.call("exec.approval.resolve", {"id": args.ids[0], **params})
        rows: list[Json] = [{"ok": True, **found}]
    else:
        found = engine.call("exec.approval.resolveMany", {"ids": args.ids, **params})
        rows = items(found, "results")
    if args.json:
        say_json(found)
    else:
        for row in rows:
            say(_decided(row))
    return 0 if all(row.get("ok") for row in rows) else 1


def decision(args: Namespace) -> dict[str, object]:
    """The answer as `exec.approval.resolve` takes it, without the id."""
    if args.action == "deny":
        return {"decision": "deny", "reason": args.reason}
    if args.always:
        return {"decision": "allow-always"}
    answer: dict[str, object] = {"decision": "allow-once"}
    if args.span is not None:
        answer["grant"] = {**args.span, "covers": "programs" if args.programs else "exact"}
    return answer


def _decided(row: Json) -> str:
    if not row.get("ok"):
        return f"{row.get('id')}: {part(row, 'error').get('message')}"
    record = part(row, "record")
    granted = f", grant {str(record['grantId'])[:8]}" if record.get("grantId") else ""
    command = command_line(str(part(record, "request").get("command")), 160)
    return f"{record.get('decision')}{granted}: {command}"


def waiting(found: Json, now_ms: int) -> Iterator[str]:
    """The list of what waits, a few lines each."""
    records = items(found, "approvals")
    if not records:
        yield "Nothing waits for you."
    for record in records:
        request = part(record, "request")
        left = duration(number(record, "expiresAtMs") - now_ms)
        yield (
            f"{str(record.get('id'))[:8]}  {request.get('kind')} in {request.get('sessionKey')}, "
            f"{left} left"
        )
        yield f"  run  {command_line(str(request.get('command')), 2000)}"
        yield f"  in   {command_line(str(request.get('cwd')))}"
        if request.get("why"):
            yield f"  why  {one_line(str(request['why']))}"
        for segment in items(request, "segments"):
            text = command_line(str(segment.get("text")), 160)
            yield f"       {text}: {one_line(str(segment.get('why')))}"


def card(record: Json, now_ms: int) -> Iterator[str]:
    """All of one request: what the console's card shows."""
    request = part(record, "request")
    yield f"id       {record.get('id')}"
    if record.get("status") == "pending":
        yield f"waits    {duration(number(record, 'expiresAtMs') - now_ms)} more"
    else:
        yield f"ended    {how(record)}"
        yield from (f"ran      {line}" for line in ran(record))
    for name, key in (("agent", "agentId"), ("session", "sessionKey"), ("why", "why")):
        yield f"{name:<8} {one_line(str(request.get(key) or '-'), 2000)}"
    # Its own lines stay lines, behind the column where ours begin.
    command = str(request.get("command")).split("\n")
    yield "run      " + "\n         ".join(command_line(line) for line in command)
    yield f"in       {command_line(str(request.get('cwd')))}"
    yield f"on       {request.get('host')}, sandbox {request.get('sandbox')}"
    for name, key in (("env", "envChanges"), ("redirect", "redirections"), ("because", "reasons")):
        for text in _texts(request, key):
            yield f"{name:<8} {one_line(text, 2000)}"
    for segment in items(request, "segments"):
        argv = " ".join(f"[{command_line(word)}]" for word in _texts(segment, "argv"))
        yield f"part     {argv or command_line(str(segment.get('text')))}"
        yield f"         program {segment.get('resolved') or 'none found'}"
        yield f"         {one_line(str(segment.get('rule') or segment.get('why')), 2000)}"
        for risk in _texts(segment, "risks"):
            yield f"         risk: {one_line(risk)}"
    if record.get("status") != "pending":
        return
    always = part(request, "always")
    grants = part(request, "grants")
    for offer in items(grants, "offers"):
        yield f"grant    {_flags(offer):<24} {offer.get('words')}"
    if grants.get("refusal"):
        yield f"grant    not offered: {grants['refusal']}"
    if always.get("refusal"):
        yield f"always   not offered: {one_line(str(always['refusal']), 2000)}"
    for pattern in _texts(always, "patterns"):
        yield f"always   {'--always':<24} {visible(pattern)}"
    for note in _texts(always, "notes"):
        yield f"         {one_line(note, 2000)}"


def how(record: Json) -> str:
    """How a request ended, and by whom."""
    if record.get("decision") is None:
        return f"expired ({record.get('reason')})"
    reason = f" ({one_line(str(record['reason']))})" if record.get("reason") else ""
    by = str(record.get("resolvedBy") or "someone")
    made = " with a grant" if record.get("grantId") and by != "grant" else ""
    return f"{record.get('decision')}{made} by {by}{reason}"


def ran(record: Json) -> list[str]:
    """What an allowed request did, in a few words; nothing when that is not known."""
    done = part(record, "ran")
    out = []
    for name, words in (
        ("exitCode", "exit {}"), ("signal", "signal {}"), ("status", "{}"),
        ("durationMs", "{} ms"), ("aborted", "aborted: {}"), ("error", "not started: {}"),
    ):  # fmt: skip
        if done.get(name) is not None:
            out.append(words.format(one_line(str(done[name]))))
    return [", ".join(out)] if out else []


def _flags(offer: Json) -> str:
    minutes = f"{offer.get('minutes')}m"
    span = {"minutes": minutes, "session": "session", "lasting": "good"}[str(offer.get("span"))]
    return f"--for {span}" + (" --programs" if offer.get("covers") == "programs" else "")


def _texts(value: Json, key: str) -> list[str]:
    found = value.get(key)
    return [str(text) for text in found] if isinstance(found, list) else []
