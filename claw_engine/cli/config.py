"""`claw config get|set|validate|file`: the configuration's file; with the engine or without one.

`validate` exits 1 when the file cannot be used.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.output import say, say_json
from claw_engine.cli.status import items
from claw_engine.client.door import NoEngine
from claw_engine.client.sync import SyncClient
from claw_engine.errors import ClawError, InvalidRequest

Json = Mapping[str, object]
Steps = tuple[str | int, ...]


class NotThere(ClawError):
    exit_code = 1


def run(args: Namespace) -> int:
    match args.action:
        case "file":
            return _file(args)
        case "validate":
            return _validate(args)
        case "get":
            return _get(args)
        case _:
            return _set(args)


def _file(args: Namespace) -> int:
    from claw_engine.config.load import config_path  # only here
    from claw_engine.paths import StateDir

    path = config_path(StateDir(state_dir(args)), os.environ)
    if args.json:
        say_json({"path": str(path), "exists": path.exists()})
    else:
        say(str(path))
    return 0


def _validate(args: Namespace) -> int:
    """Always from the file: the engine may not run because of it."""
    from claw_engine.cli.config_alone import look

    found = look(state_dir(args), os.environ)
    if args.json:
        say_json(found)
    else:
        for row in items(found, "issues"):
            say(f"ERROR  {row.get('message')}")
        for row in items(found, "warnings"):
            say(f"note   {row.get('message')}")
        state = "can be used" if found["valid"] else "CANNOT BE USED"
        say(f"{found['path']}{'' if found['exists'] else ' (no such file)'} {state}.")
    return 0 if found["valid"] else 1


def _get(args: Namespace) -> int:
    try:
        with client(args) as engine:
            found: Json = engine.call("config.get")
    except NoEngine:
        from claw_engine.cli.config_alone import look

        found = look(state_dir(args), os.environ)
    value: object = found.get("config")
    for step in steps_of(args.path):
        below = _below(value, step)
        if below is None and found.get("valid") is False:
            raise NotThere(f"{found.get('path')} cannot be used, so nothing in it is in force.",
                           hint="`claw config validate` says where it is wrong.")  # fmt: skip
        if below is None:
            raise NotThere(f"{args.path} is not in {found.get('path')}.",
                           hint="Its default is in force: docs/configuration.md.")  # fmt: skip
        value = below[0]
    if args.json:
        say_json({"path": args.path, "value": value})
    else:
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        say(text)
    return 0


def _below(value: object, step: str | int) -> tuple[object] | None:
    if isinstance(value, dict) and str(step) in value:
        return (value[str(step)],)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return (value[step],)
    return None


def _set(args: Namespace) -> int:
    steps, value = steps_of(args.path), value_of(args.value)
    if not steps:
        raise InvalidRequest("A path is needed.", hint="For example: gateway.port")
    try:
        connected = client(args).__enter__()
    except NoEngine:
        from claw_engine.cli.config_alone import write

        found = write(state_dir(args), os.environ, lambda now: changed(now, steps, value))
        notices: list[Json] = []
    else:
        with contextlib.ExitStack() as stack:
            stack.push(connected)
            found, notices = _set_there(connected, steps, value)
    waits = next((str(n.get("title")) for n in notices if n.get("code") == "config-waits"), "")
    if args.json:
        say_json({"ok": True, "path": found.get("path"), "key": args.path, "waits": waits or None})
    else:
        say(f"{args.path} is set in {found.get('path')}.{f' {waits}' if waits else ''}")
    return 0


def _set_there(engine: SyncClient, steps: Steps, value: object) -> tuple[Json, list[Json]]:
    """Change it through the engine; what was there before, and what stands on the board now."""
    found = engine.call("config.get")
    params: dict[str, object] = {"raw": changed(found, steps, value)}
    if found.get("exists"):
        params["baseHash"] = found.get("hash")
    engine.call("config.set", params)
    return found, items(engine.call("status"), "notices")


def changed(found: Json, steps: Steps, value: object) -> str:
    """The file's text with one value changed. Raises InvalidRequest."""
    from claw_engine.config.edit import EditError, remove_value, set_value  # only to write
    from claw_engine.config.spans import ScanError

    text = found.get("raw") if found.get("exists") else ""
    if not isinstance(text, str):
        raise InvalidRequest(f"{found.get('path')} cannot be changed from here.",
                             hint="Edit the file itself.")  # fmt: skip
    try:
        return remove_value(text, steps) if value is None else set_value(text, steps, value)
    except (EditError, ScanError) as error:
        raise InvalidRequest(f"{found.get('path')} cannot be changed there: {error}.") from error


def steps_of(path: str) -> Steps:
    """`agents.list[0].model`, also `agents.list.0.model`. Raises InvalidRequest."""
    found: list[str | int] = []
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        found.append(int(index) if index else int(name) if name.isdecimal() else name)
    if path and not found:
        raise InvalidRequest(f"{path!r} is no path.", hint="For example: gateway.port")
    return tuple(found)


def value_of(text: str) -> object:
    """JSON5, else the text itself."""
    import pyjson5  # only to write

    try:
        value: object = pyjson5.decode(text)
    except pyjson5.Json5Exception:
        return text
    return value
