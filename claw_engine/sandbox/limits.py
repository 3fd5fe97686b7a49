"""How many processes and how much memory the confined commands of one engine may take together.

A control group where this user may make one (v1 or v2), else limits for each process. Knows no
command; `around` gives what to start instead.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_PREFIX = "claw-"

_JOIN = (
    'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || echo "claw: not limited" >&2; '
    "shift; done; shift; "
    "echo 500 >/proc/self/oom_score_adj 2>/dev/null; "
)
"""Joins the groups, then is the first to go when memory runs out: before the engine."""

_number = itertools.count()

SPARE_PROCESSES = 512
"""Added where the limit counts all processes of the user, not only the commands'."""


class Wanted(Struct, frozen=True):
    """0 means no limit; `memory` in bytes."""

    processes: int = 0
    memory: int = 0


def wanted(processes: int, memory_percent: int) -> Wanted:
    """With a share of this machine's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Wanted(processes, total * memory_percent // 100 if memory_percent else 0)


class Limits(Struct, frozen=True):
    """What holds: directories of control groups, and the shell's words for the rest."""

    wanted: Wanted = Wanted()
    groups: tuple[str, ...] = ()
    shell: str = ""
    missing: tuple[str, ...] = ()
    """What could not be limited, in words."""

    def around(self, argv: Sequence[str]) -> tuple[str, ...]:
        """`argv`, started within these limits. The process id stays the same."""
        script = f'{_JOIN}{self.shell}exec "$@"'
        return ("/bin/sh", "-c", script, "limits", *self.groups, "--", *argv)

    def close(self) -> None:
        """Remove the groups; one that still has processes stays. Blocking."""
        for group in self.groups:
            with contextlib.suppress(OSError):
                os.rmdir(group)  # noqa: PTH106 - text paths throughout


def limits(wish: Wanted, root: Path = _ROOT, own: Path = _OWN, uid: int | None = None) -> Limits:
    """The best that can be had here. Blocking; raises nothing."""
    groups: list[str] = []
    name = f"{_PREFIX}{os.getpid()}-{next(_number)}"
    got: set[str] = set()
    for what, folder in _homes(root, own):
        group = folder / name
        _sweep(folder)
        try:
            group.mkdir(exist_ok=True)
            made = _set(group, what, wish)
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            continue
        groups.append(str(group))
        got |= made
    shell, missing = "", []
    if wish.processes and "pids" not in got:
        if (os.geteuid() if uid is None else uid) == 0:
            missing.append("the number of processes: root needs a control group for that")
        else:
            shell += f"ulimit -u {wish.processes + SPARE_PROCESSES} 2>/dev/null; "
    if wish.memory and "memory" not in got:
        shell += f"ulimit -d {wish.memory // 1024} 2>/dev/null; "
        missing.append("memory of all commands together: each process has the limit alone")
    return Limits(wish, tuple(groups), shell, tuple(missing))


def _homes(root: Path, own: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Our own groups: the controllers and the directory of each."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        path = path.lstrip("/")
        if names in ("pids", "memory"):
            yield (names,), root / names / path
        elif not names:
            base = (
                root / path if (root / "cgroup.controllers").exists() else root / "unified" / path
            )
            with contextlib.suppress(OSError):
                there = (base / "cgroup.controllers").read_text().split()
                both = tuple(name for name in ("pids", "memory") if name in there)
                if both:
                    _hand_down(base, both)
                    yield both, base


def _hand_down(base: Path, names: Sequence[str]) -> None:
    """Groups below get these controllers; refused where processes live in `base` itself."""
    active = (base / "cgroup.subtree_control").read_text().split()
    lacking = [name for name in names if name not in active]
    if lacking:
        (base / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in lacking))


def _set(group: Path, names: Sequence[str], wish: Wanted) -> set[str]:
    got = set()
    if "pids" in names and wish.processes:
        (group / "pids.max").write_text(str(wish.processes))
        got.add("pids")
    if "memory" in names and wish.memory:
        version_1 = group / "memory.limit_in_bytes"
        (version_1 if version_1.exists() else group / "memory.max").write_text(str(wish.memory))
        got.add("memory")
        for name in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            if (group / name).exists():
                with contextlib.suppress(OSError):
                    swap = wish.memory if "memsw" in name else 0
                    (group / name).write_text(str(swap))
    return got


def _sweep(folder: Path) -> None:
    """Groups of engines that are gone."""
    with contextlib.suppress(OSError):
        for old in folder.glob(f"{_PREFIX}*"):
            number = old.name.removeprefix(_PREFIX).partition("-")[0]
            if number.isdecimal() and not Path("/proc", number).exists():
                with contextlib.suppress(OSError):
                    old.rmdir()
