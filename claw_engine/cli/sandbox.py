"""`claw sandbox`: the containers, where a session's commands run, and making one anew."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import duration, items, number

Json = Mapping[str, object]


def run(args: Namespace) -> int:
    match args.action or "list":
        case "explain":
            method, params = "sandbox.explain", {"sessionKey": args.session}
        case "recreate":
            method = "sandbox.recreate"
            params = {"sessionKey": args.session, "agentId": args.agent, "all": args.all}
        case _:
            method, params = "sandbox.list", {}
    with client(args) as engine:
        found = engine.call(method, {k: v for k, v in params.items() if v is not None})
    if args.json:
        say_json(found)
    elif method == "sandbox.list":
        _list(found)
    elif method == "sandbox.explain":
        _explain(found)
    else:
        removed = found.get("removed")
        names = [str(name) for name in removed] if isinstance(removed, list) else []
        for name in names:
            say(f"{name}: gone; it is made anew when it is needed.")
        if not names:
            say("There was no such container.")
    return 0


def _list(found: Json) -> None:
    rows = items(found, "containers")
    if not rows:
        say("No containers.")
    now = int(time.time() * 1000)
    for row in rows:
        running = row.get("running")
        state = "gone" if running is None else "running" if running else "stopped"
        used = duration(now - (number(row, "lastUsedAtMs") or now))
        name, key = one_line(str(row.get("containerName"))), one_line(str(row.get("sessionKey")))
        say(f"{name}  {state}  for {key}  used {used} ago  {one_line(str(row.get('image')))}")


def _explain(found: Json) -> None:
    say(f"session   {found.get('sessionKey')} (agent {found.get('agentId')})")
    if not found.get("sandboxed"):
        say(f"sandbox   no box of its own: mode {found.get('mode')}")
        confined = found.get("confined")
        if isinstance(confined, dict):
            backend, warning = confined.get("backend"), confined.get("warning")
            where = f"by {backend}, on this machine" if backend else "no: on this machine as you"
            say(f"confined  {where}" + (f"; {one_line(str(warning))}" if warning else ""))
    else:
        backend = found.get("backend") or f"NONE WORKS: {found.get('broken')}"
        say(f"sandbox   {backend} (mode {found.get('mode')}, scope {found.get('scope')})")
        say(f"asks      {'as outside: a way out is open' if found.get('asks') else 'nothing'}")
        say(f"sees      {found.get('workdir')} = {found.get('workspace')}")
        say(f"agent's   {found.get('agentWorkspace')}: {found.get('workspaceAccess')}")
        say(f"network   {found.get('network')}")
        if found.get("container"):
            say(f"container {found.get('container')} of {found.get('image')}")
    elevated = found.get("elevated")
    word = elevated.get("level") if isinstance(elevated, dict) else "off"
    say(f"elevated  {word}")
