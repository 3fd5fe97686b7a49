"""Finds the processes of one tool call among all processes of this machine (Linux, /proc).

A process belongs to a call when it carries the call's ids in its environment, or is in the session
the call's command leads. Runs in a thread. Where there is no /proc nothing is found
and only the process group can be stopped.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from claw_engine.tools.exec.env import CALL_ID, RUN_ID

PROC = Path("/proc")
_DEAD_STATES = "ZXx"


class ProcessId(Struct, frozen=True):
    """A process, safe against its number being used again: number and start time (ticks)."""

    pid: int
    started: int


class Seen(Struct, frozen=True):
    """What /proc says about one live process."""

    id: ProcessId
    name: str
    parent: int
    group: int
    session: int


class Mark(Struct, frozen=True):
    """How the processes of a call are recognised; `leader` leads their session and group."""

    leader: ProcessId
    run_id: str
    call_id: str

    def carried_by(self, environ: bytes) -> bool:
        """Whether an environment (NUL-separated) has the run id and not another call's id."""
        names = environ.split(b"\0")
        if f"{RUN_ID}={self.run_id}".encode() not in names:
            return False
        calls = [name for name in names if name.startswith(f"{CALL_ID}=".encode())]
        return not calls or f"{CALL_ID}={self.call_id}".encode() in calls


def readable() -> bool:
    """Whether this system has a /proc to read."""
    return look(os.getpid()) is not None


def look(pid: int) -> Seen | None:
    """One process, or None when it is gone or only waits to be reaped."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    head, _, rest = stat.rpartition(")")
    fields = rest.split()
    if len(fields) < 20 or fields[0] in _DEAD_STATES:
        return None
    name = head.partition("(")[2]
    parent, group, session = int(fields[1]), int(fields[2]), int(fields[3])
    return Seen(ProcessId(pid, int(fields[19])), name, parent, group, session)


def alive(process: ProcessId) -> Seen | None:
    """The process if it still runs and is the same one."""
    seen = look(process.pid)
    return seen if seen is not None and seen.id == process else None


def members(mark: Mark) -> list[Seen]:
    """Every live process of the call, the leader included. Never this process itself."""
    return [seen for seen in of_user() if _belongs(mark, seen)]


def belongs(mark: Mark, process: ProcessId) -> bool:
    """Asked again right before a signal: is this still a process of the call?"""
    seen = alive(process)
    return seen is not None and _belongs(mark, seen)


def descendants(leader: int) -> list[Seen]:
    """Live processes below `leader` by parent links, nearest first."""
    children: dict[int, list[Seen]] = {}
    for seen in of_user():
        children.setdefault(seen.parent, []).append(seen)
    found: list[Seen] = []
    pending = [leader]
    while pending:
        for seen in children.pop(pending.pop(0), []):
            found.append(seen)
            pending.append(seen.id.pid)
    return found


def _belongs(mark: Mark, seen: Seen) -> bool:
    if seen.session == mark.leader.pid or seen.group == mark.leader.pid:
        # The number of a session stays taken while a member lives; an older process is not ours.
        return seen.id.started >= mark.leader.started
    try:
        environ = (PROC / str(seen.id.pid) / "environ").read_bytes()
    except OSError:
        return False
    return mark.carried_by(environ)


def marks_of(pid: int) -> tuple[str | None, str | None]:
    """Run id and call id in a process's environment; None where there is none to read."""
    try:
        names = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None, None
    found = dict(name.partition(b"=")[::2] for name in names)
    run_id, call_id = found.get(RUN_ID.encode()), found.get(CALL_ID.encode())
    return _text(run_id), _text(call_id)


def signal_one(target: ProcessId, sig: int, still: Callable[[ProcessId], object]) -> None:
    """Signal a process through a descriptor, so that a reused number is never hit.

    `still` is asked once more, when the descriptor holds the process.
    """
    with contextlib.suppress(OSError):
        fd = os.pidfd_open(target.pid)
        try:
            if still(target):
                signal.pidfd_send_signal(fd, sig)
        finally:
            os.close(fd)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def of_user() -> Iterator[Seen]:
    """Live processes of this user, without this process."""
    uid, me = os.getuid(), os.getpid()
    try:
        names = [entry.name for entry in PROC.iterdir() if entry.name.isdecimal()]
    except OSError:
        return
    for name in names:
        try:
            if int(name) == me or (PROC / name).stat().st_uid != uid:
                continue
        except OSError:
            continue
        seen = look(int(name))
        if seen is not None:
            yield seen
