"""`claw agent`: one turn. The answer on stdout, everything else on stderr.

Attaches to the engine of the state directory; without one it runs an engine in this process for
the turn (`embedded.py`), whose door is open, so approvals are answered from another terminal.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from claw_engine.cli.attach import state_dir_for_start
from claw_engine.cli.output import note, one_line, say, say_json
from claw_engine.cli.status import items, part
from claw_engine.cli.turn import TurnPrinter
from claw_engine.client.door import MAX_REQUEST, NoEngine, RequestTooLarge
from claw_engine.client.sync import CallFailed, SyncClient, is_final, payload_of
from claw_engine.errors import InvalidRequest

ATTACH_S = 5.0
"""How long an engine that holds the lock may take to open its door."""


def run(args: Namespace) -> int:
    message = sys.stdin.read(MAX_REQUEST + 1) if args.message == "-" else args.message
    if len(message) > MAX_REQUEST or len(message.encode("utf-8", "replace")) > MAX_REQUEST:
        raise RequestTooLarge("The message")
    if not message.strip():
        raise InvalidRequest("The message is empty.", hint="--message TEXT, or - to read stdin.")
    where = state_dir_for_start(args)
    params: dict[str, object] = {
        "message": message,
        "sessionKey": args.session,
        "idempotencyKey": new_id(),
    }
    try:
        result = _attached(where, params)
    except NoEngine:
        result = _embedded(where, params)
    return show(result, as_json=args.json)


def show(result: Mapping[str, object], *, as_json: bool) -> int:
    """Print the final answer of `agent`."""
    if as_json:
        say_json(result)
        return 0
    for payload in items(part(result, "result"), "payloads"):
        say(str(payload.get("text", "")))
    return 0


def show_notices(hello: Mapping[str, object]) -> None:
    """What is wrong with the configuration, on stderr: it may change what the turn does."""
    for notice in items(part(hello, "snapshot"), "notices"):
        if str(notice.get("code")).startswith("config"):
            note(f"{notice.get('level')}: {one_line(str(notice.get('title')), 400)}")


def new_id() -> str:
    """A UUID, version 4; the module would cost more than the line."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _attached(where: Path, params: Mapping[str, object]) -> Mapping[str, object]:
    with SyncClient(where, caps=("trace", "tool-events")) as engine:
        show_notices(engine.hello)
        try:
            return _follow(engine, where, params)
        except KeyboardInterrupt:
            _abort(engine, params)
            raise


def _follow(engine: SyncClient, where: Path, params: Mapping[str, object]) -> Mapping[str, object]:
    printer = TurnPrinter(str(params["idempotencyKey"]), where)
    engine.call("trace.subscribe", {"sessionKey": params["sessionKey"]})
    request_id = engine.send("agent", params)
    sent = False
    try:
        for frame in engine.frames():
            if frame.get("type") == "event":
                printer.feed(str(frame.get("event")), frame.get("payload"))
            elif frame.get("id") == request_id:
                sent = True
                if is_final("agent", frame):
                    return payload_of(frame)
    except NoEngine as error:
        if sent:  # it was accepted: a second engine would do it twice
            raise Lost(error, str(params["sessionKey"])) from None
        raise
    raise AssertionError("frames never ends by itself")


class Lost(CallFailed):
    """The engine went away after it had accepted the message."""

    def __init__(self, cause: NoEngine, session: str) -> None:
        hint = f"The message is kept; see session {session} when the engine is back."
        super().__init__({"message": cause.title, "details": {"hint": hint}})


def _abort(engine: SyncClient, params: Mapping[str, object]) -> None:
    note("stopping the run")
    stop = {"sessionKey": params["sessionKey"], "runId": params["idempotencyKey"]}
    with contextlib.suppress(NoEngine, CallFailed):
        engine.call("chat.abort", stop, timeout=2.0)


def _embedded(where: Path, params: Mapping[str, object]) -> Mapping[str, object]:
    from claw_engine.cli.embedded import turn  # lazily: it imports the whole engine
    from claw_engine.engine import EngineHeld  # with it

    try:
        return turn(where, params)
    except EngineHeld as held:
        deadline = time.monotonic() + ATTACH_S
        while time.monotonic() < deadline:
            try:
                return _attached(where, params)
            except NoEngine:
                time.sleep(0.1)
        raise held from None
