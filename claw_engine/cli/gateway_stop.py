"""`claw gateway stop` and `restart`: ask the engine, and wait until it is done.

Exit code 0 when it is, 1 when it refuses or takes too long, 2 when no engine runs.
"""

from __future__ import annotations

from argparse import Namespace

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.lock import holder, wait
from claw_engine.cli.output import say, say_json
from claw_engine.errors import ClawError


class NotDone(ClawError):
    exit_code = 1


def run(args: Namespace) -> int:
    return _restart(args) if args.action == "restart" else _stop(args)


def _stop(args: Namespace) -> int:
    where = state_dir(args)
    with client(args) as engine:
        pid = engine.call("health").get("pid")
        engine.call("engine.stop", {"when": "now"})
    if not wait(lambda: holder(where) is None, args.wait):
        raise NotDone(
            f"The engine (pid {pid}) still runs after {args.wait:g} s.",
            hint="It may wait for a run to end: `claw logs` says more.", details={"pid": pid},
        )  # fmt: skip
    if args.json:
        say_json({"stopped": True, "pid": pid})
    else:
        say(f"engine stopped: pid {pid}")
    return 0


def _restart(args: Namespace) -> int:
    where = state_dir(args)
    before = (holder(where) or {}).get("startedAt")
    with client(args) as engine:
        params = {"reason": args.reason} if args.reason else {}
        answer = engine.call("gateway.restart.request", params)
    if not answer.get("ok"):
        raise NotDone(f"The engine does not restart: {answer.get('reason')}.")

    def again() -> bool:
        found = holder(where) or {}
        return found.get("startedAt") not in (None, before) and bool(found.get("door"))

    cooldown = answer.get("cooldownMsApplied")
    rest = cooldown / 1000 if isinstance(cooldown, int) else 0.0
    if not wait(again, args.wait + rest):
        raise NotDone(
            f"The engine has not restarted after {args.wait + rest:g} s.",
            hint="It waits for runs to end: `claw status` names them.",
        )
    found = holder(where) or {}
    if args.json:
        say_json({"restarted": True, "pid": found.get("pid"), "port": found.get("port"), **answer})
    else:
        say(f"engine restarted: pid {found.get('pid')}, port {found.get('port')}")
    return 0
