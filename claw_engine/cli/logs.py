"""`claw logs [--follow]`: the engine's log; also of an engine that is gone."""

from __future__ import annotations

import contextlib
import json
import time
from argparse import Namespace
from collections.abc import Mapping

from claw_engine.cli.attach import client, state_dir
from claw_engine.cli.output import flush, note, one_line, say
from claw_engine.client.door import NoEngine
from claw_engine.client.sync import SyncClient

FOLLOW_S = 0.5
"""Seconds between looks with --follow."""

Piece = Mapping[str, object]


def run(args: Namespace) -> int:
    try:
        with client(args) as engine:
            cursor = _show(engine.call("logs.tail", {"limit": args.limit}), args)
            if args.follow:
                cursor = _follow(engine, cursor, args)
    except NoEngine as error:
        if args.follow:
            raise
        note(f"claw: {error.title} The log that it left:")
        return _alone(args)
    while args.follow:
        cursor = _again(cursor, args)
    return 0


def _follow(engine: SyncClient, cursor: object, args: Namespace) -> object:
    """Show what comes until the engine goes; where it went."""
    try:
        while True:
            time.sleep(FOLLOW_S)
            cursor = _show(engine.call("logs.tail", {"cursor": cursor, "limit": 5000}), args)
    except NoEngine:
        note("claw: the engine has gone; waiting for it")
        return cursor


def _again(cursor: object, args: Namespace) -> object:
    """Go on once an engine is there."""
    time.sleep(FOLLOW_S)
    with contextlib.suppress(NoEngine), client(args) as engine:
        return _follow(engine, cursor, args)
    return cursor


def _show(piece: Piece, args: Namespace) -> object:
    """Say the lines; the cursor of the next piece."""
    lines = piece.get("lines")
    for line in lines if isinstance(lines, list) else ():
        say(str(line) if args.json else readable(str(line)))
    if args.follow:
        flush()
    return piece.get("cursor")


def _alone(args: Namespace) -> int:
    from claw_engine.log_tail import LogTail  # an engine that answers has it itself
    from claw_engine.paths import StateDir
    from claw_engine.world import RealDisk

    disk = RealDisk()
    try:
        tail = LogTail(disk, StateDir(state_dir(args)).logs_dir)
        _show(tail.read(None, args.limit), args)
        return 0
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
