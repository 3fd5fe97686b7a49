"""`claw logs [--follow]`: the engine's log; also of an engine that is gone."""

from __future__ import annotations

import json
import time
from argparse import Namespace
from collections.abc import Callable, Mapping

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.output import flush, note, one_line, say
from claw_engine.client.door import NoEngine

FOLLOW_S = 0.5
"""Seconds between looks with --follow."""

Piece = Mapping[str, object]


def run(args: Namespace) -> int:
    try:
        with client(args) as engine:
            return _show(args, lambda params: engine.call("logs.tail", params))
    except NoEngine as error:
        if args.follow:
            raise
        note(f"claw: {error.title} The log that it left:")
    return _alone(args)


def _show(args: Namespace, ask: Callable[[dict[str, object]], Piece]) -> int:
    piece = ask({"limit": args.limit})
    while True:
        lines = piece.get("lines")
        for line in lines if isinstance(lines, list) else ():
            say(str(line) if args.json else readable(str(line)))
        if not args.follow:
            return 0
        flush()
        time.sleep(FOLLOW_S)
        piece = ask({"cursor": piece.get("cursor"), "limit": 5000})


def _alone(args: Namespace) -> int:
    from claw_engine.log_tail import LogTail  # an engine that answers has it itself
    from claw_engine.paths import StateDir
    from claw_engine.world import RealDisk

    disk = RealDisk()
    try:
        tail = LogTail(disk, StateDir(state_dir(args)).logs_dir)
        return _show(args, lambda params: tail.read(None, args.limit))
    finally:
        disk.close()


def readable(line: str) -> str:
    """One JSON line of the log for people."""
    try:
        entry = json.loads(line)
    except ValueError:
        return one_line(line, 400)
    if not isinstance(entry, dict):
        return one_line(line, 400)
    stamp = str(entry.get("time", entry.get("ts", "")))
    level = str(entry.get("level", ""))
    name = str(entry.get("logger", entry.get("name", "")))
    words = one_line(str(entry.get("msg", entry.get("message", line))), 400)
    return f"{stamp} {level:<5} {name}: {words}"
