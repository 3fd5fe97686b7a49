"""What this machine offers to an allowed command: sockets that listen, services that act for it.

Only looks (Linux: /proc/net, well-known paths); decides nothing. Blocking, a few milliseconds.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from claw_engine.sandbox import sockdiag
from claw_engine.sandbox.base import Route, RouteKind

_PROC = Path("/proc")
_LISTENS = 0x10000
"""Flag of a socket that accepts connections (__SO_ACCEPTCON)."""

_TCP_LISTEN = "0A"
_DOCKER_PORTS = (2375, 2376)
_SSH_PORT = 22

_FOLDERS = (
    ("tmux's sockets", "/tmp/tmux-*"),
    ("screen's sockets", "/run/screen"),
    ("screen's sockets", "/tmp/screens"),
    ("screen's sockets", "/tmp/uscreens"),
    ("zellij's sockets", "/tmp/zellij-*"),
    ("the X11 display", "/tmp/.X11-unix"),
    ("the X11 session manager", "/tmp/.ICE-unix"),
    ("an ssh agent", "/tmp/ssh-*"),
)
_SOCKETS = (
    ("docker.sock", "/run/docker.sock"),
    ("docker.sock", "/var/run/docker.sock"),
    ("podman.sock", "/run/podman/podman.sock"),
    ("containerd.sock", "/run/containerd/containerd.sock"),
    ("crio.sock", "/run/crio/crio.sock"),
    ("lxd's socket", "/var/lib/lxd/unix.socket"),
    ("lxd's socket", "/var/snap/lxd/common/lxd/unix.socket"),
    ("snapd.socket", "/run/snapd.socket"),
    ("systemd's socket", "/run/systemd/private"),
    ("the system bus", "/run/dbus/system_bus_socket"),
)
_RUNTIME = (
    ("the user bus", "bus"),
    ("the user's systemd", "systemd/private"),
    ("docker.sock", "docker.sock"),
    ("podman.sock", "podman/podman.sock"),
    ("the Wayland display", "wayland-*"),
    ("zellij's sockets", "zellij"),
)
_ABSTRACT = (
    ("an abstract D-Bus socket", "/tmp/dbus-"),
    ("the X11 display", "/tmp/.X11-unix/"),
    ("containerd's shim", "/containerd-shim"),
)

TIED_TO_SOCKETS = frozenset(
    {
        "TMUX", "TMUX_PANE", "STY", "WINDOW", "ZELLIJ", "DBUS_SESSION_BUS_ADDRESS",
        "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY",
        "SSH_TTY", "KITTY_LISTEN_ON", "VSCODE_IPC_HOOK_CLI", "DOCKER_HOST",
    }
)  # fmt: skip
"""Variables that only say where such a socket is."""


class Machine(Struct, frozen=True):
    """Where to look; `env` is the engine's environment."""

    env: Mapping[str, str] = field(default_factory=dict)
    uid: int = 0
    proc: Path = _PROC
    root: str = ""
    """Put before every well-known path (tests)."""

    def homes(self) -> tuple[str, ...]:
        """Home directories of this user: by the environment and by the user database."""
        found = [self.env.get("HOME", "")]
        with contextlib.suppress(KeyError, ImportError):
            import pwd  # not on every system

            found.append(pwd.getpwuid(self.uid).pw_dir)
        real = (os.path.realpath(path) for path in found if path.startswith("/"))
        return tuple(dict.fromkeys(path for path in real if path != "/" and os.path.isdir(path)))  # noqa: PTH112 - text paths throughout

    def runtime_dirs(self) -> tuple[str, ...]:
        """Directories full of sockets: /run and this user's own, wherever it is."""
        own = self.env.get("XDG_RUNTIME_DIR", "")
        extra = (own,) if own.startswith("/") and os.path.realpath(own) != "/" else ()
        return ("/run", "/var/run", *extra)

    def sshd_listens(self) -> bool:
        return _SSH_PORT in self._tcp_ports()

    def folders(self) -> Iterator[tuple[str, str]]:
        """Directories that exist for such sockets: what they are, and the path."""
        wanted = [
            *_FOLDERS,
            ("the door", f"/tmp/claw-{self.uid}"),
            ("tmux's sockets", f"{self.env.get('TMUX_TMPDIR') or '/tmp'}/tmux-{self.uid}"),
            ("screen's sockets", self.env.get("SCREENDIR", "")),
            *(("screen's sockets", f"{home}/.screen") for home in self.homes()),
        ]
        for what, pattern in wanted:
            for path in matching(self.root + pattern) if pattern else ():
                yield what, path

    def known_sockets(self) -> Iterator[tuple[str, str]]:
        """Well-known sockets that exist."""
        own = [self.env.get("XDG_RUNTIME_DIR", ""), f"/run/user/{self.uid}"]
        wanted = [*_SOCKETS, *_of_env(self.env)]
        wanted += [
            (what, f"{folder}/{name}") for folder in own if folder for what, name in _RUNTIME
        ]
        for what, pattern in wanted:
            for path in matching(self.root + pattern):
                yield what, path

    def listening(self) -> Iterator[str]:
        """Every listening Unix socket by path; an abstract one starts with @."""
        for line in self._lines("net/unix"):
            fields = line.split(maxsplit=7)
            with contextlib.suppress(ValueError):
                if len(fields) == 8 and int(fields[3], 16) & _LISTENS:
                    yield fields[7]

    def routes(self) -> tuple[Route, ...]:
        """All that could act for a command, before any confinement."""
        found: dict[tuple[str, str], Route] = {}

        def add(route: Route) -> None:
            found.setdefault((route.kind, route.what), route)

        for what, path in self.folders():
            if what != "the door" and _holds_socket(path):
                add(Route(RouteKind.SOCKET, what, path))
        for what, path in self.known_sockets():
            if _is_socket(path) or (os.path.isdir(path) and _holds_socket(path)):  # noqa: PTH112 - text paths
                add(Route(RouteKind.SOCKET, what, path))
        for name in self.listening():
            for what, prefix in _ABSTRACT:
                if name.startswith(f"@{prefix}"):
                    add(Route(RouteKind.ABSTRACT, what, name))
        ports = self._tcp_ports()
        for port in _DOCKER_PORTS:
            if port in ports:
                add(Route(RouteKind.TCP, f"docker on port {port}", str(port)))
        if _SSH_PORT in ports:
            add(Route(RouteKind.FILE, "ssh to this machine", "ssh"))
        return tuple(found.values())

    def _tcp_ports(self) -> frozenset[int]:
        if self.proc == _PROC:
            with contextlib.suppress(OSError, AttributeError):
                return sockdiag.listening_ports()  # the tables in /proc take the kernel 8 ms each
        ports: set[int] = set()
        for table in ("net/tcp", "net/tcp6"):
            for line in self._lines(table):
                fields = line.split()
                if len(fields) > 3 and fields[3] == _TCP_LISTEN:
                    ports.add(int(fields[1].rpartition(":")[2], 16))
        return frozenset(ports)

    def _lines(self, name: str) -> Iterable[str]:
        try:
            return (self.proc / name).read_text(errors="surrogateescape").splitlines()[1:]
        except OSError:
            return ()


def _of_env(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    docker = env.get("DOCKER_HOST", "")
    if docker.startswith("unix://"):
        yield "docker.sock", docker.removeprefix("unix://")
    for part in env.get("DBUS_SESSION_BUS_ADDRESS", "").split(";"):
        kind, _, where = part.partition("=")
        if kind == "unix:path":
            yield "the user bus", where.partition(",")[0]
    if tmux := env.get("TMUX", ""):
        yield "tmux's sockets", tmux.partition(",")[0]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116 - text paths throughout
    except OSError:
        return False


def _holds_socket(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_socket(entry.path):
                    return True
                # screen: one directory a user
                if entry.is_dir(follow_symlinks=False) and any(
                    _is_socket(f"{entry.path}/{name}")
                    for name in os.listdir(entry.path)  # noqa: PTH208 - names only
                ):
                    return True
    except OSError:
        return False
    return False


def matching(pattern: str) -> list[str]:
    """As glob.glob; quick where a directory holds thousands of other names, as /tmp does."""
    folder, _, name = pattern.rpartition("/")
    if not glob.has_magic(pattern):
        return [pattern] if os.path.lexists(pattern) else []
    if glob.has_magic(folder) or name.startswith("*"):
        return glob.glob(pattern)  # noqa: PTH207 - text paths
    begins = name.partition("*")[0].partition("?")[0].partition("[")[0]
    try:
        found = [one for one in os.listdir(folder) if one.startswith(begins)]  # noqa: PTH208
    except OSError:
        return []
    return [f"{folder}/{one}" for one in fnmatch.filter(found, name)]
