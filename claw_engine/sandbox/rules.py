"""Which files a command may reach: hidden, read, written. The longest path decides.

Everywhere the same idea: what would run later without a question (system programs, start-up
files, cron, programs on PATH, this engine's own code) is read-only, what decides (the state
directory) and what acts for others (sockets) is hidden, data stays as the user has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from claw_engine.sandbox.base import Access, Scope

SYSTEM = frozenset(
    {
        "etc", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "boot", "home", "homes",
        "root", "snap", "nix", "gnu", "proc", "sys", "dev", "run", "lost+found",
    }
)  # fmt: skip
"""Top-level directories in which nothing is written."""

RUN_KEPT = (
    "systemd/resolve", "resolvconf", "NetworkManager/resolv.conf", "nscd", "postgresql", "mysqld",
    "redis", "lock", "shm", "udev", "opengl-driver", "current-system", "booted-system", "wrappers",
    "media", "mount",
)  # fmt: skip
"""What stays visible below /run; all else there belongs to services that act for their callers."""

LATER = (
    "/var/spool/cron", "/var/spool/at", "/var/spool/anacron", "/var/spool/incron", "/var/cron",
    "/var/lib/systemd",
)  # fmt: skip
"""Directories outside the system ones whose content is run later."""

CACHES = (
    ".cache", ".npm/_cacache", ".npm/_logs", ".cargo/registry", ".cargo/git", ".m2/repository",
    ".gradle/caches", ".local/state", ".nuget/packages", ".bun/install/cache",
)  # fmt: skip
"""Hidden folders of the home directory that stay writable."""

CREDENTIALS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials",
    ".config/gcloud", ".config/gh", ".config/rclone", ".password-store", ".local/share/keyrings",
    ".mozilla", ".config/chromium", ".config/google-chrome", ".npmrc", ".pypirc", ".pgpass",
)  # fmt: skip
"""Hidden from commands that nobody was asked about."""

SECRETS = (
    "/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/letsencrypt", "/etc/wireguard",
    "/etc/openvpn", "/etc/ppp", "/etc/NetworkManager/system-connections", "/etc/samba",
    "/etc/krb5.keytab", "/etc/docker", "/etc/rancher", "/etc/kubernetes", "/boot", "/home",
    "/homes", "/root", "/lost+found",
)  # fmt: skip
"""Hidden from what works in a box, besides everything that is no part of the system."""

PROGRAMS = frozenset({"opt", "snap", "nix", "gnu"})
"""Top-level directories that hold programs, not data."""

_MANY = 400
"""Folders of a home directory that are looked at."""


class Place(Struct, frozen=True):
    """Where a command runs.

    `state_root` is never reachable, but the workspace in it is unless `workspace_closed`.
    `writable` are further paths that the operator opened, `reach` sockets that stay reachable,
    `shown` what a box may read.
    """

    workspace: str
    state_root: str
    homes: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    reach: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    workspace_closed: bool = False
    hide_ssh: bool = False
    runtime_dirs: tuple[str, ...] = field(default=("/run",))


def rules_for(place: Place, scope: Scope) -> dict[str, Access]:
    """The rules of a place. Looks at directories; blocking.

    Of two rules for one path the later of this function counts: the state directory is last.
    """
    found = _Rules(place)
    found.put("/", Access.READ)
    for folder in place.runtime_dirs:
        found.put(folder, Access.HIDDEN)
        for kept in RUN_KEPT:
            found.put(f"{folder}/{kept}", Access.READ)
    if scope is Scope.MACHINE:
        _machine(found, place)
    else:
        if scope is Scope.BOX:
            _box(found)
        for folder in ("/tmp", "/var/tmp"):
            found.put(folder, Access.SCRATCH)
    for home in place.homes:
        _home(found, home, scope)
    for path in place.shown:
        found.put(path, Access.READ)
    if place.hide_ssh:
        for home in place.homes:
            found.put(f"{home}/.ssh", Access.HIDDEN)
    workspace = os.path.realpath(place.workspace)
    found.put(workspace, Access.WRITE)
    for path in place.reach:  # a socket below /run; connecting needs no writable mount
        found.put(path, Access.READ)
    for path in place.writable:
        found.put(path, Access.WRITE)
    for home in place.homes:  # a workspace that is the home directory opens no start-up file
        if _inside(home, workspace):
            for entry in _hidden_entries(home):
                if not _inside(workspace, entry):
                    found.put(entry, Access.READ)
    programs = place.path if scope is not Scope.BOX else ()
    for path in (*place.code, *programs):
        if path in place.code or not _inside(path, workspace):
            found.put(path, Access.READ)
    return found.finished(workspace)


class _Rules:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._state = os.path.realpath(place.state_root)
        self._rules: dict[str, Access] = {}

    def put(self, path: str, access: Access) -> None:
        """A rule for what is really there; nothing for what is not."""
        real = os.path.realpath(path)
        if os.path.lexists(real) and not _inside(real, self._state):
            self._rules[real] = access

    def finished(self, workspace: str) -> dict[str, Access]:
        rules = self._rules
        if os.path.lexists(self._state):
            rules[self._state] = Access.HIDDEN
        if (
            _inside(workspace, self._state)
            and workspace != self._state
            and os.path.isdir(workspace)  # noqa: PTH112 - text paths throughout
            and not self._place.workspace_closed
        ):
            rules[workspace] = Access.WRITE
        for path in map(os.path.realpath, self._place.shown):
            if _inside(path, self._state) and path != self._state and os.path.isdir(path):  # noqa: PTH112 - text paths throughout
                rules[path] = Access.READ
        # A directory above a protected path must not be moved away, taking the path with it: as a
        # rule of its own it becomes a mount point, which nobody can rename.
        for path in list(rules):
            if rules[path] in (Access.HIDDEN, Access.READ):
                for above in ancestors(path):
                    inherited = effective(rules, above)
                    if inherited is Access.WRITE:
                        rules.setdefault(above, inherited)
        return dict(sorted(rules.items(), key=lambda rule: (depth(rule[0]), rule[0])))


def _machine(found: _Rules, place: Place) -> None:
    for name in _names("/"):
        path = f"/{name}"
        if name not in SYSTEM and os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112,PTH114 - text paths throughout
            found.put(path, Access.WRITE)
    for path in LATER:
        found.put(path, Access.READ)


def _box(found: _Rules) -> None:
    for name in _names("/"):
        path = f"/{name}"
        if name not in SYSTEM | PROGRAMS and os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112,PTH114 - text paths throughout
            found.put(path, Access.HIDDEN)
    for path in SECRETS:
        found.put(path, Access.HIDDEN)


def _home(found: _Rules, home: str, scope: Scope) -> None:
    """Nothing new directly in a home directory, its hidden entries as they are, folders open."""
    found.put(home, Access.HIDDEN if scope is Scope.BOX else Access.READ)
    if scope is Scope.BOX:
        return
    if scope is Scope.WORKSPACE:
        for name in CREDENTIALS:
            found.put(f"{home}/{name}", Access.HIDDEN)
        return
    for path in _folders(home):
        found.put(path, Access.WRITE)
    for name in CACHES:
        found.put(f"{home}/{name}", Access.WRITE)
    found.put(f"{home}/bin", Access.READ)
    for path in _hidden_entries(home):
        if os.path.islink(path):  # noqa: PTH114 - text paths throughout
            found.put(path, Access.READ)  # its target may lie in an open folder


def _folders(home: str) -> Iterator[str]:
    for name in _names(home)[:_MANY]:
        path = f"{home}/{name}"
        if not name.startswith(".") and os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112,PTH114 - text paths throughout
            yield path


def _hidden_entries(home: str) -> list[str]:
    return [f"{home}/{name}" for name in _names(home) if name.startswith(".")]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return []


def effective(rules: Mapping[str, Access], path: str) -> Access:
    """What holds at a path: the rule of the longest path that contains it."""
    for candidate in (path, *ancestors(path)):
        if candidate in rules:
            return rules[candidate]
    return Access.READ


def ancestors(path: str) -> Iterable[str]:
    """The directories above a normal absolute path, nearest first, `/` last."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
