"""What confinement is: what a child may reach, the wrapped command, and how far a backend holds.

Values and one interface. Knows no tool, no approval and no configuration file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

PLACES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/snap/bin")
"""Where a program that confines or contains may lie."""


def system_program(*names: str) -> str | None:
    """The path of the first of these that is installed; never from PATH, where a command could
    have put one."""
    paths = (f"{folder}/{name}" for name in names for folder in PLACES)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


class Access(StrEnum):
    """What a child may do at a path and below it, until a deeper path says otherwise."""

    HIDDEN = "hidden"
    READ = "read"
    WRITE = "write"
    SCRATCH = "scratch"
    """An empty directory of its own, gone with the command."""


class Scope(StrEnum):
    """How far a child may write."""

    MACHINE = "machine"
    """Where the user's data is; not where it would run later (system, start-up files, cron)."""
    WORKSPACE = "workspace"
    """Only the workspace; credentials are hidden."""
    BOX = "box"
    """Only the workspace, and nothing of the user's can be read either."""


class RouteKind(StrEnum):
    """How a child would get at something that can act for it outside."""

    SOCKET = "socket"
    ABSTRACT = "abstract"
    TCP = "tcp"
    FILE = "file"


class Route(Struct, frozen=True):
    """A way around the approvals that exists on this machine; `what` completes "… is reachable"."""

    kind: RouteKind
    what: str
    path: str = ""


class Plan(Struct, frozen=True):
    """One command and what it may reach. All paths are absolute and without symbolic links.

    `rules` hold for files, the longest path wins; `sockets` are further paths that must not be
    connected to. `network` False cuts the network off.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    rules: Mapping[str, Access] = field(default_factory=dict)
    sockets: frozenset[str] = frozenset()
    network: bool = True
    uid: int = 0


class Wrapped(Struct, frozen=True):
    """What to start instead. `fds` are descriptors it must inherit.

    `monitor` says that the first process only watches over the command: it must not be asked to
    end (the command would be killed with it) and tells a death by signal N as exit code 128 + N.
    `stop` is a command that ends what the first process started elsewhere, in a container.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    fds: tuple[int, ...] = ()
    monitor: bool = False
    stop: tuple[str, ...] = ()


class Probe(Struct, frozen=True):
    """Whether a backend works here; `reason` says why not, or which one it is."""

    available: bool
    reason: str
    routes_left_open: tuple[Route, ...] = ()


class Sandbox(Protocol):
    """A backend. `wrap` is pure; `closes` tells which kinds of routes it shuts."""

    @property
    def name(self) -> str: ...

    def wrap(self, plan: Plan) -> Wrapped: ...

    def closes(self, route: Route, *, network: bool) -> bool: ...
