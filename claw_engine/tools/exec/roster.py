"""The durable list of commands in the background: what a crash must not make us forget.

One JSON file of ours, replaced as a whole. A process is written down by number and start time, and
the machine (boot and pid namespace) in which these mean something.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from claw_engine.tools.exec.processes import PROC, Mark, ProcessId
from claw_engine.world import World

log = logging.getLogger("claw.tools")

VERSION = 1


class Listed(Struct, frozen=True):
    """One command: its processes' mark and what it was. `started_ms` is wall time."""

    session_id: str
    mark: Mark
    session_key: str
    command: str
    cwd: str
    started_ms: int

    def to_json(self) -> dict[str, object]:
        return {
            "sessionId": self.session_id,
            "pid": self.mark.leader.pid,
            "startTicks": self.mark.leader.started,
            "runId": self.mark.run_id,
            "callId": self.mark.call_id,
            "sessionKey": self.session_key,
            "command": self.command,
            "cwd": self.cwd,
            "startedAtMs": self.started_ms,
        }


def listed_from_json(value: object) -> Listed | None:
    """A line of the file; None when it cannot be one."""
    if not isinstance(value, dict):
        return None

    def number(name: str) -> int:
        found = value.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    def text(name: str) -> str:
        found = value.get(name)
        return found if isinstance(found, str) else ""

    leader = ProcessId(number("pid"), number("startTicks"))
    mark = Mark(leader, text("runId"), text("callId"))
    if leader.pid <= 1 or not mark.run_id:
        return None
    return Listed(
        text("sessionId"), mark, text("sessionKey"), text("command"), text("cwd"),
        number("startedAtMs"),
    )  # fmt: skip


def machine() -> str:
    """Where a process number and a start time name one process: this boot, this pid namespace."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        space = str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""
    return f"{boot} {space}"


class Roster:
    """Use: `await load()` once at start, then `await keep()` whenever the list has changed."""

    def __init__(self, world: World, path: Path, now: Callable[[], Sequence[Listed]]) -> None:
        self._disk = world.disk
        self._path = path
        self._now = now
        self._lock = asyncio.Lock()
        self._written: list[dict[str, object]] | None = None

    async def load(self) -> list[Listed]:
        """What the last engine left, if it ran on this machine since its boot."""
        return await self._disk.run(self._read)

    async def keep(self) -> bool:
        """Write the present list; False when the disk refused (logged: the command goes on)."""
        async with self._lock:
            rows = [listed.to_json() for listed in self._now()]
            if rows == self._written:
                return True
            try:
                await self._disk.run(self._write, rows)
            except OSError as error:
                log.warning("background commands not written down: %s", error)
                return False
            self._written = rows
            return True

    def _write(self, rows: list[dict[str, object]]) -> None:
        value = {"version": VERSION, "machine": machine(), "processes": rows}
        data = json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "replace")
        self._disk.replace(self._path, data + b"\n")

    def _read(self) -> list[Listed]:
        try:
            value = json.loads(self._disk.read_bytes(self._path))
        except FileNotFoundError:
            self._written = []
            return []
        except (OSError, ValueError) as error:
            log.warning("background commands of the last engine are unreadable: %s", error)
            return []
        if not isinstance(value, dict):
            return []
        rows = value.get("processes")
        if rows == []:
            self._written = []
        rows = rows if isinstance(rows, list) else []
        here = machine()
        if not here or value.get("machine") != here:
            return []
        return [listed for row in rows if (listed := listed_from_json(row)) is not None]
