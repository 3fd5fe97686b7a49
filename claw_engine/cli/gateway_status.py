"""`claw gateway status [--deep]`: whether an engine runs here, where, and whether it answers.

Exit code 0 when it runs (and, with --deep, every probe is well), 1 when a probe failed, 2 when
none runs.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.lock import holder
from claw_engine.cli.output import one_line, say, say_json
from claw_engine.cli.status import duration, items
from claw_engine.errors import ClawError


def run(args: Namespace) -> int:
    where = state_dir(args)
    found = holder(where)
    answer: dict[str, object] = {"running": found is not None, "stateDir": str(where)}
    if found is None:
        if args.json:
            say_json(answer)
        else:
            say(f"no engine runs on {where}; start one: claw gateway start --state-dir {where}")
        return 2
    for name in ("pid", "port", "door", "mode", "version", "startedAt"):
        answer[name] = found.get(name)
    failed = _deep(args, answer) if args.deep else False
    if args.json:
        say_json(answer)
    else:
        _show(answer)
    return 1 if failed else 0


def _deep(args: Namespace, answer: dict[str, object]) -> bool:
    """Ask at the door and at the port; whether something failed."""
    try:
        with client(args, patience_s=5.0) as engine:
            answer["health"] = engine.call("health")
            answer["probes"] = items(engine.call("doctor.probes"), "probes")
        answer["doorAnswers"] = True
    except ClawError as error:
        answer |= {"doorAnswers": False, "doorError": error.title, "probes": []}
    port = answer.get("port")
    if isinstance(port, int):
        answer["ready"] = _ready(port)
    probes = items(answer, "probes")
    reached = answer["doorAnswers"] and str(answer.get("ready", "200")).startswith("200")
    return not reached or any(row.get("health") == "fail" for row in probes)


def _ready(port: int) -> str:
    """What `/readyz` answers: status and words."""
    import http.client  # only for --deep
    import ssl

    plain = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    # Only whether somebody answers is asked, nothing secret is sent: any certificate will do.
    secure = http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=5, context=ssl._create_unverified_context()
    )
    said = "no answer"
    for connection in (plain, secure):
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            return f"{response.status} {response.reason}"
        except (OSError, http.client.HTTPException) as error:
            said = f"no answer: {error}"
        finally:
            connection.close()
    return said


def _show(answer: Mapping[str, object]) -> None:
    started = answer.get("startedAt")
    up = duration(int(time.time() * 1000) - started) if isinstance(started, int) else "?"
    say(f"running    pid {answer['pid']}, {answer['version']}, {answer['mode']}, up {up}")
    say(f"port       {answer['port'] or 'none'}")
    say(f"door       {answer['door']}")
    say(f"state      {answer['stateDir']}")
    if "doorAnswers" not in answer:
        return
    say(f"answers    door: {'yes' if answer['doorAnswers'] else answer.get('doorError')}"
        f"; port /readyz: {answer.get('ready', 'no port')}")  # fmt: skip
    for row in items(answer, "probes"):
        if row.get("health") != "ok":
            text = one_line(str(row.get("text")), 300)
            say(f"{str(row.get('health')).upper():<10} {row.get('room')}/{row.get('name')}: {text}")
