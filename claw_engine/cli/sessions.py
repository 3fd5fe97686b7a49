"""`claw sessions`: the conversations of the engine; show, begin anew, delete."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import duration, items, number

Json = Mapping[str, object]


def run(args: Namespace) -> int:
    action = getattr(args, "action", None) or "list"
    with client(args) as engine:
        if action == "list":
            found = engine.call("sessions.list")
        elif action == "show":
            found = engine.call("chat.history", {"sessionKey": args.key, "limit": args.limit})
        elif action == "reset":
            found = engine.call("sessions.reset", {"key": args.key})
        else:
            keep = not args.keep_transcript
            found = engine.call("sessions.delete", {"key": args.key, "deleteTranscript": keep})
    if args.json:
        say_json(found)
        return 0
    {"list": _list, "show": _show, "reset": _reset, "delete": _delete}[action](found)
    return 0


def _list(found: Json) -> None:
    now = int(time.time() * 1000)
    rows = items(found, "sessions")
    for row in rows:
        age = duration(now - number(row, "updatedAt"))
        tokens = row.get("totalTokens")
        known = f"{tokens} tokens" if isinstance(tokens, int) else ""
        say(f"{row.get('key')!s:<40} {age + ' ago':<14} {row.get('model') or '':<28} {known}"
            .rstrip())  # fmt: skip
    if not rows:
        say("There are no sessions.")


def _show(found: Json) -> None:
    messages = items(found, "messages")
    for message in messages:
        words = _text(message.get("content"))
        if words:
            say(f"{message.get('role')}: {one_line(words, 2000)}")
    if not messages:
        say("Nothing was said.")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = (
        [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    said = [str(part.get("text") or "") for part in parts if part.get("type") == "text"]
    said += [f"[{part.get('name')}]" for part in parts if part.get("type") == "toolCall"]
    return " ".join(word for word in said if word)


def _reset(found: Json) -> None:
    entry = found.get("entry")
    fresh = entry.get("sessionId") if isinstance(entry, dict) else None
    say(f"{found.get('key')} begins anew{f' as {fresh}' if fresh else ''}.")


def _delete(found: Json) -> None:
    archived = found.get("archived")
    names = ", ".join(map(str, archived)) if isinstance(archived, list) else ""
    if not found.get("deleted", True):
        say(f"There is no session {found.get('key')}.")
    else:
        say(f"{found.get('key')} is deleted{f'; kept as {names}' if names else ''}.")
