"""`claw status`: one screen, quickly: this path imports neither asyncio nor a class library."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping

from claw_engine.cli.attach import client
from claw_engine.cli.output import say, say_json

Json = Mapping[str, object]

LOOK_S = 5.0
"""Whoever only looks is told soon that an engine does not answer: it may be stopped or frozen."""


def run(args: Namespace) -> int:
    with client(args, patience_s=LOOK_S) as engine:
        # The hello already carries the status: one round trip less.
        found = engine.hello.get("snapshot")
        if not isinstance(found, dict) or "runs" not in found:
            found = engine.call("status")
    if args.json:
        say_json(found)
    else:
        for name, text in rows(found, int(time.time() * 1000)):
            say(f"{name:<10} {text}")
    return 0


def rows(status: Json, now_ms: int) -> Iterator[tuple[str, str]]:
    """Name and text of each line."""
    yield (
        "engine",
        (
            f"{status.get('version')}, pid {status.get('pid')}, {status.get('mode')}, "
            f"up {duration(number(status, 'uptimeMs'))}"
        ),
    )
    yield "state", str(status.get("stateDir"))
    yield "model", model_text(part(status, "model"))
    warning = status.get("bypassWarning")
    yield "mode", f"{status.get('permissionMode')}{f' ({warning})' if warning else ''}"
    runs = part(status, "runs")
    counts = f"{number(runs, 'active')} active, {number(runs, 'queued')} queued"
    paused = "; PAUSED" if status.get("paused") else ""
    yield "runs", f"{counts}, {number(runs, 'parked')} waiting for you{paused}"
    waiting = part(status, "approvals")
    if number(waiting, "pending"):
        left = duration(number(waiting, "nextExpiresAtMs") - now_ms)
        pending = number(waiting, "pending")
        yield "approvals", f"{pending} pending, next expires in {left} (claw approvals list)"
    yield (
        "lanes",
        ", ".join(
            f"{lane.get('lane')} {lane.get('active')}/{lane.get('width')} q{lane.get('queued')}"
            for lane in items(status, "lanes")
        ),
    )
    for budget in items(status, "budgets"):
        over = "" if budget.get("action") == "warn" else f", then {budget.get('action')}"
        yield "budget", f"{budget.get('scope')}: {budget.get('text')}{over}"
    yield "sessions", str(number(part(status, "sessions"), "count"))
    for notice in items(status, "notices"):
        yield (
            str(notice.get("level")),
            " ".join(str(notice[k]) for k in ("title", "hint") if notice.get(k)),
        )


def model_text(model: Json) -> str:
    name = str(model.get("name"))
    if model.get("error"):
        return f"{name}: {model['error']}"
    return name if model.get("isAI") else f"{name} (not an AI)"


def duration(ms: int) -> str:
    """Two units at most: "3 h 12 min", "1 min 52 s", "0 s"."""
    seconds = max(0, ms // 1000)
    sizes = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    for index, (unit, size) in enumerate(sizes):
        if seconds >= size or unit == "s":
            text = f"{seconds // size} {unit}"
            rest = seconds % size
            if unit != "s" and rest >= sizes[index + 1][1]:
                small, small_size = sizes[index + 1]
                text += f" {rest // small_size} {small}"
            return text
    raise AssertionError("the last unit always fits")


def part(value: Json, name: str) -> Json:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def items(value: Json, name: str) -> list[Json]:
    found = value.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def number(value: Json, name: str) -> int:
    found = value.get(name)
    return int(found) if isinstance(found, int | float) else 0
