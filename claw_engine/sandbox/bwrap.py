"""bubblewrap: the command sees its own file tree, processes and terminals.

Argument building is pure. Whatever is not mentioned in a plan is read-only; the engine's processes
do not exist in there, and no socket that a plan names can be connected to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from claw_engine.sandbox.base import Access, Plan, Route, RouteKind, Wrapped
from claw_engine.sandbox.rules import depth, effective

KEPT_CAPABILITIES = (
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETUID", "CAP_SETGID",
    "CAP_KILL", "CAP_NET_BIND_SERVICE",
)  # fmt: skip
"""What root keeps: enough to work with files, nothing that reaches mounts, devices or processes."""

PLACES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")

_OWN_TREES = ("/proc", "/dev")


def find_program() -> str | None:
    """bwrap from a system directory; never from PATH, where a command could have put one."""
    for folder in PLACES:
        path = f"{folder}/bwrap"
        if os.access(path, os.X_OK):
            return path
    return None


class Bwrap:
    """Use with the path of the bwrap program."""

    name = "bwrap"

    def __init__(self, program: str) -> None:
        self._program = program

    def wrap(self, plan: Plan) -> Wrapped:
        argv = [self._program, *_arguments(plan), "--", *plan.argv]
        return Wrapped(tuple(argv), plan.env, monitor=True)

    def closes(self, route: Route, *, network: bool) -> bool:
        match route.kind:
            case RouteKind.SOCKET | RouteKind.FILE:
                return True
            case RouteKind.ABSTRACT | RouteKind.TCP:
                return not network


def _arguments(plan: Plan) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--die-with-parent")
    if not plan.network:
        yield "--unshare-net"
    yield from ("--cap-drop", "ALL")
    if plan.uid == 0:
        for name in KEPT_CAPABILITIES:
            yield from ("--cap-add", name)
    yield from ("--ro-bind", "/", "/")
    hidden: list[str] = []
    for path, access in _ordered(plan):
        match access:
            case Access.READ:
                yield from ("--ro-bind-try", path, path)
            case Access.WRITE:
                yield from ("--bind-try", path, path)
            case Access.SCRATCH:
                yield from ("--perms", "1777", "--tmpfs", path)
            case Access.HIDDEN if os.path.isdir(path):  # noqa: PTH112 - text paths throughout
                yield from ("--perms", "0755", "--tmpfs", path)
                hidden.append(path)
            case Access.HIDDEN:
                yield from ("--ro-bind", "/dev/null", path)
    # Last: no rule above may lie over them. Root without capabilities still owns /proc/sys.
    yield from ("--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
    yield from ("--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger")
    for path in hidden:
        yield from ("--remount-ro", path)
    yield from ("--chdir", plan.cwd)


def _ordered(plan: Plan) -> Iterator[tuple[str, Access]]:
    """Rules and sockets, outer paths first, without what changes nothing."""
    rules = {path: rule for path, rule in plan.rules.items() if not _own_tree(path)}
    for path in plan.sockets:
        if effective(rules, path) is not Access.HIDDEN and not _own_tree(path):
            rules[path] = Access.HIDDEN
    for path, access in sorted(rules.items(), key=lambda rule: (depth(rule[0]), rule[0])):
        if path != "/":
            yield path, access


def _own_tree(path: str) -> bool:
    return any(path == tree or path.startswith(f"{tree}/") for tree in _OWN_TREES)
