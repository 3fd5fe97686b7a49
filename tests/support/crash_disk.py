"""Worlds that end badly: a disk that dies in the middle of a write, one that fails, one that tells.

`KillingDisk` and `KillingSpawn` SIGKILL their own process at a named moment, `FailingDisk` refuses
the nth write, `RecordingDisk` writes down what a power cut could undo. None of them is patched
over anything: they are handed in through `World`.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import secrets
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from claw_engine.world import Process, RealDisk, RealSpawn


def kind_of(path: Path) -> str:
    """What a file of the state directory is: journal, transcript, index, side, requests …"""
    match path.name:
        case name if path.parent.name == "inbox" and name.startswith("sessions-"):
            return "side" if name.endswith(".jsonl") else "aside"
        case "journal.jsonl":
            return "journal"
        case "requests.jsonl":
            return "requests"
        case "sessions.json":
            return "index"
        case "exec-approvals.json":
            return "rules"
        case name if name.endswith(".jsonl"):
            return "transcript"
        case name if ".jsonl." in name or ".broken-" in name:
            return "aside"
    return "other"


# -- kill ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class KillPlan:
    """Die when a moment that fits `pattern` comes for the `nth` time (from 1).

    A moment is `operation:kind:step`, as `append:journal:half` or `spawn:exec:after`; patterns are
    those of fnmatch. `cut` says where a torn write tears: 0 = its first byte, 1 = its last.
    """

    pattern: str
    nth: int = 1
    cut: float = 0.5
    _seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hits(self, moment: str) -> bool:
        """Count a moment; whether it is the one to die at."""
        if not fnmatch.fnmatchcase(moment, self.pattern):
            return False
        with self._lock:
            self._seen += 1
            return self._seen == self.nth


def die() -> None:
    """No cleanup, no buffers, no handlers: what a power button does to a process."""
    os.kill(os.getpid(), signal.SIGKILL)


class KillingDisk(RealDisk):
    """A real disk up to the moment of the plan; then the write is left as it is and we are dead."""

    def __init__(self, plan: KillPlan) -> None:
        super().__init__()
        self._plan = plan

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        name = f"append:{kind_of(path)}"
        self._at(f"{name}:before")
        if self._plan.hits(f"{name}:half"):
            super().append(path, data[: self._torn(data)], fsync=False, mode=mode)
            die()
        if self._plan.hits(f"{name}:written"):
            super().append(path, data, fsync=False, mode=mode)
            die()
        super().append(path, data, fsync=fsync, mode=mode)
        self._at(f"{name}:synced")

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        name = f"replace:{kind_of(path)}"
        self._at(f"{name}:before")
        temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        if self._plan.hits(f"{name}:half"):
            temporary.write_bytes(data[: self._torn(data)])
            die()
        if self._plan.hits(f"{name}:tmp"):
            temporary.write_bytes(data)
            die()
        if self._plan.hits(f"{name}:renamed"):  # the folder is not fsynced yet
            temporary.write_bytes(data)
            temporary.replace(path)
            die()
        super().replace(path, data, mode=mode)
        self._at(f"{name}:done")

    def truncate(self, path: Path, size: int) -> None:
        self._at(f"truncate:{kind_of(path)}:before")
        super().truncate(path, size)
        self._at(f"truncate:{kind_of(path)}:done")

    def rename(self, source: Path, target: Path) -> None:
        self._at(f"rename:{kind_of(source)}:before")
        super().rename(source, target)
        self._at(f"rename:{kind_of(source)}:done")

    def mkdir(self, path: Path, mode: int = 0o700) -> None:
        super().mkdir(path, mode)
        self._at("mkdir:folder:done")

    def _at(self, moment: str) -> None:
        if self._plan.hits(moment):
            die()

    def _torn(self, data: bytes) -> int:
        return min(len(data) - 1, int(len(data) * self._plan.cut))


class KillingSpawn(RealSpawn):
    """Dies just before or just after a tool process has come into being."""

    def __init__(self, plan: KillPlan) -> None:
        self._plan = plan

    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bool = False
    ) -> Process:
        if self._plan.hits("spawn:exec:before"):
            die()
        process = await super().start(argv, cwd=cwd, env=env, stdin=stdin)
        if self._plan.hits("spawn:exec:after"):
            die()
        return process


# -- fail ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class FailPlan:
    """Refuse the `nth` write (from 1), or from it on until healed when `lasting`.

    `left` of the data (0 to 1) lands before the error, as on a disk that fills up; `uncuttable`
    makes the cut-back fail too, so that half a line stays behind.
    """

    nth: int
    number: int = errno.ENOSPC
    lasting: bool = False
    left: float = 0.0
    uncuttable: bool = False


class FailingDisk(RealDisk):
    """Counts its writes (append, replace, truncate, rename) and fails those of the plan."""

    def __init__(self, plan: FailPlan | None = None) -> None:
        super().__init__()
        self.plan = plan
        self.writes = 0
        self.failed: list[str] = []
        self._debt = False  # an error was given whose half line could not be cut

    def heal(self) -> None:
        """The disk is well from now on."""
        self.plan = None

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        if (plan := self._fails(f"append:{kind_of(path)}")) is not None:
            before = path.stat().st_size if path.exists() else 0
            super().append(path, data[: int(len(data) * plan.left)], fsync=False, mode=mode)
            if plan.uncuttable:
                self._debt = True
            else:
                os.truncate(path, before)
            raise OSError(plan.number, os.strerror(plan.number), str(path))
        super().append(path, data, fsync=fsync, mode=mode)

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        self._maybe(f"replace:{kind_of(path)}", path)
        super().replace(path, data, mode=mode)

    def truncate(self, path: Path, size: int) -> None:
        if self._debt and (plan := self.plan) is not None:
            self._debt = plan.lasting
            raise OSError(plan.number, os.strerror(plan.number), str(path))
        self._maybe(f"truncate:{kind_of(path)}", path)
        super().truncate(path, size)

    def rename(self, source: Path, target: Path) -> None:
        self._maybe(f"rename:{kind_of(source)}", source)
        super().rename(source, target)

    def _maybe(self, what: str, path: Path) -> None:
        if (plan := self._fails(what)) is not None:
            raise OSError(plan.number, os.strerror(plan.number), str(path))

    def _fails(self, what: str) -> FailPlan | None:
        self.writes += 1
        plan = self.plan
        if plan is None or self.writes < plan.nth:
            return None
        if not plan.lasting and self.writes > plan.nth:
            return None
        self.failed.append(what)
        return plan


# -- tell ------------------------------------------------------------------------------------------
# What happened, at the grain at which a power cut takes it apart. Paths are absolute texts.


@dataclass(frozen=True, slots=True)
class Created:
    """A new empty file under this name; the name is safe once its folder is fsynced."""

    path: str
    mode: int


@dataclass(frozen=True, slots=True)
class Wrote:
    """Bytes put at an offset; safe once the file is fsynced."""

    path: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """The file ends at `size` now; safe once the file is fsynced."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """fsync of a file: all its bytes so far are safe."""

    path: str


@dataclass(frozen=True, slots=True)
class SyncedFolder:
    """fsync of a folder: all names in it are safe."""

    path: str


@dataclass(frozen=True, slots=True)
class Renamed:
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Removed:
    path: str


@dataclass(frozen=True, slots=True)
class MadeFolder:
    path: str


@dataclass(frozen=True, slots=True)
class Told:
    """Not the disk: something the outside saw (an acknowledgement, an answer, a process)."""

    what: str
    id: str


Step: TypeAlias = (
    Created | Wrote | Cut | Synced | SyncedFolder | Renamed | Removed | MadeFolder | Told
)


class RecordingDisk(RealDisk):
    """A real disk that writes down its steps, in the order in which they could reach the platter.

    The steps of one call are those of `RealDisk`: a step stands in the log before it counts as
    safe, and the fsyncs stand there only after the real one has returned.
    """

    def __init__(self, tell: Callable[[Step], None]) -> None:
        super().__init__()
        self._tell = tell

    def append(self, path: Path, data: bytes, *, fsync: bool, mode: int = 0o600) -> None:
        created = not path.exists()
        offset = 0 if created else path.stat().st_size
        super().append(path, data, fsync=fsync, mode=mode)
        if created:
            self._tell(Created(str(path), mode))
        if data:  # nothing but an fsync otherwise
            self._tell(Wrote(str(path), offset, data))
        if fsync:
            self._tell(Synced(str(path)))
            if created:
                self._tell(SyncedFolder(str(path.parent)))

    def replace(self, path: Path, data: bytes, *, mode: int = 0o600) -> None:
        temporary = f"{path}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
        super().replace(path, data, mode=mode)
        for step in (
            Created(temporary, mode),
            Wrote(temporary, 0, data),
            Synced(temporary),
            Renamed(temporary, str(path)),
            SyncedFolder(str(path.parent)),
        ):
            self._tell(step)

    def truncate(self, path: Path, size: int) -> None:
        super().truncate(path, size)
        self._tell(Cut(str(path), size))

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._tell(Renamed(str(source), str(target)))
        self._tell(SyncedFolder(str(target.parent)))

    def unlink(self, path: Path, *, missing_ok: bool = False) -> None:
        existed = path.exists()
        super().unlink(path, missing_ok=missing_ok)
        if existed:
            self._tell(Removed(str(path)))

    def mkdir(self, path: Path, mode: int = 0o700) -> None:
        missing = [p for p in (path, *path.parents) if not p.exists()]
        super().mkdir(path, mode)
        for folder in reversed(missing):
            self._tell(MadeFolder(str(folder)))
            self._tell(SyncedFolder(str(folder.parent)))


class RecordingSpawn(RealSpawn):
    """Writes down each process that was started, by its command line."""

    def __init__(self, tell: Callable[[Step], None]) -> None:
        self._tell = tell

    async def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bool = False
    ) -> Process:
        process = await super().start(argv, cwd=cwd, env=env, stdin=stdin)
        self._tell(Told("spawned", " ".join(argv)))
        return process
