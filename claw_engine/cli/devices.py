"""`claw devices`: who is paired, who asks to be, and their tokens."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping, Sequence

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import duration, items, number
from claw_engine.client.sync import SyncClient
from claw_engine.errors import InvalidRequest

Json = Mapping[str, object]
SHOWN = 12
"""Characters of a device's id in the list."""


def run(args: Namespace) -> int:
    action = getattr(args, "action", None) or "list"
    with client(args) as engine:
        known = engine.call("device.pair.list")
        if action == "list":
            found: Json = known
        else:
            found = _act(engine, args, action, known)
    if args.json:
        say_json(found)
    elif action == "list":
        _list(found)
    else:
        _told(action, found)
    return 0


def _act(engine: SyncClient, args: Namespace, action: str, known: Json) -> Json:
    if action in ("approve", "reject"):
        request = _one(args.id, items(known, "pending"), "requestId", "request")
        return engine.call(f"device.pair.{action}", {"requestId": request})
    device = _one(args.id, items(known, "paired"), "deviceId", "device")
    if action == "remove":
        return engine.call("device.pair.remove", {"deviceId": device})
    params: dict[str, object] = {"deviceId": device, "role": args.role}
    if action == "rotate" and args.scopes:
        params["scopes"] = args.scopes
    return engine.call(f"device.token.{action}", params)


def _one(wanted: str, rows: Sequence[Json], field: str, what: str) -> str:
    """The whole id. Raises InvalidRequest when none or several begin so."""
    ids = [str(row.get(field)) for row in rows]
    found = [wanted] if wanted in ids else [one for one in ids if one.startswith(wanted)]
    if len(found) != 1:
        why = "several begin so" if found else "`claw devices` lists them"
        raise InvalidRequest(f"There is no one {what} {wanted!r}: {why}.")
    return found[0]


def _list(found: Json) -> None:
    now = int(time.time() * 1000)
    for row in items(found, "pending"):
        say(f"asks    {row.get('requestId')}  {_who(row)}  wants {_names(row.get('scopes'))}, "
            f"{duration(now - number(row, 'ts'))} ago")  # fmt: skip
    for row in items(found, "paired"):
        say(f"paired  {str(row.get('deviceId'))[:SHOWN]}  {_who(row)}  "
            f"may {_names(row.get('approvedScopes') or row.get('scopes'))}")  # fmt: skip
    if not items(found, "pending") and not items(found, "paired"):
        say("No device is paired, none asks.")


def _who(row: Json) -> str:
    parts = (row.get("displayName") or row.get("clientId"), row.get("platform"),
             row.get("remoteIp"))  # fmt: skip
    return one_line(", ".join(str(part) for part in parts if part), 80) or "unnamed"


def _names(scopes: object) -> str:
    names = [str(s).removeprefix("operator.") for s in scopes] if isinstance(scopes, list) else []
    return one_line(" ".join(names), 120) or "nothing"


def _told(action: str, found: Json) -> None:
    device = found.get("device")
    inner = device if isinstance(device, dict) else {}
    name = str(found.get("deviceId") or inner.get("deviceId"))[:SHOWN]
    if action == "rotate":
        say(f"{name}: the new token is {found.get('token')}")
        say("It is shown this once; the old one is good no more.")
        return
    done = {"approve": "is paired", "reject": "is not let in", "remove": "is forgotten",
            "revoke": "has no token any more"}[action]  # fmt: skip
    say(f"{name} {done}.")
