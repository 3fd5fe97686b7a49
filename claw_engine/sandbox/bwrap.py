"""bubblewrap: the command sees its own file tree, processes and terminals.

Argument building is pure. Whatever is not mentioned in a plan is read-only; the engine's processes
do not exist in there, and no socket that a plan names can be connected to.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from claw_engine.sandbox.base import Access, Plan, Route, RouteKind, Wrapped, system_program
from claw_engine.sandbox.rules import depth, effective

KEPT_CAPABILITIES = (
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETUID", "CAP_SETGID",
    "CAP_KILL", "CAP_NET_BIND_SERVICE",
)  # fmt: skip
"""What root keeps: enough to work with files, nothing that reaches mounts, devices or processes."""

_MAX_SCRIPT = 100_000
"""The kernel takes 128 KiB in one argument."""

_OWN_TREES = ("/proc", "/dev")


def find_program() -> str | None:
    """bwrap's path, None when it is not installed."""
    return system_program("bwrap")


class Bwrap:
    """Use with the path of the bwrap program."""

    name = "bwrap"

    def __init__(self, program: str) -> None:
        self._program = program

    def wrap(self, plan: Plan) -> Wrapped:
        before, after = [self._program, *_view(plan)], list(_own_trees(plan))
        masks = sorted(_masks(plan))
        script = _late(before, masks, after) if masks else ""
        if masks and len(script) <= _MAX_SCRIPT:
            return Wrapped(("/bin/sh", "-c", script, "bwrap", *plan.argv), plan.env, monitor=True)
        hidden = (word for path in masks for word in _mask(path))
        return Wrapped((*before, *hidden, *after, "--", *plan.argv), plan.env, monitor=True)

    def closes(self, route: Route, *, network: bool) -> bool:
        match route.kind:
            case RouteKind.SOCKET | RouteKind.FILE:
                return True
            case RouteKind.ABSTRACT | RouteKind.TCP:
                return not network


def _late(before: list[str], masks: list[str], after: list[str]) -> str:
    """A script that masks the sockets that are still there: one that is gone has no place for a
    mount, and bwrap would run nothing."""
    lines = [
        f"[ -e {shlex.quote(path)} ] && m=$m{shlex.quote(f' {shlex.join(_mask(path))}')}"
        for path in masks
    ]
    run = shlex.quote(f"exec {shlex.join(before)}"), shlex.quote(f' {shlex.join(after)} -- "$@"')
    return "\n".join(("m=", *lines, f'eval {run[0]}"$m"{run[1]}'))


def _mask(path: str) -> tuple[str, ...]:
    return ("--ro-bind", "/dev/null", path)


def _masks(plan: Plan) -> Iterator[str]:
    """Sockets that no rule hides, other than directories of them."""
    for path in plan.sockets:
        shown = effective(plan.rules, path) is not Access.HIDDEN and not _own_tree(path)
        if shown and not os.path.isdir(path):  # noqa: PTH112 - text paths throughout
            yield path


def _view(plan: Plan) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try", "--die-with-parent")
    if not plan.network:
        yield "--unshare-net"
    yield from ("--cap-drop", "ALL")
    if plan.uid == 0:
        for name in KEPT_CAPABILITIES:
            yield from ("--cap-add", name)
    yield from ("--ro-bind", "/", "/")
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
            case Access.HIDDEN:
                yield from _mask(path)


def _own_trees(plan: Plan) -> Iterator[str]:
    """Last: no rule may lie over them. Root without capabilities still owns /proc/sys."""
    yield from ("--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
    yield from ("--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger")
    for path, access in _ordered(plan):
        if access is Access.HIDDEN and os.path.isdir(path):  # noqa: PTH112 - text paths throughout
            yield from ("--remount-ro", path)
    yield from ("--chdir", plan.cwd)


def _ordered(plan: Plan) -> Iterator[tuple[str, Access]]:
    """Rules and directories of sockets, outer paths first, without what changes nothing."""
    rules = {path: rule for path, rule in plan.rules.items() if not _own_tree(path)}
    for path in plan.sockets:
        shown = effective(rules, path) is not Access.HIDDEN and not _own_tree(path)
        if shown and os.path.isdir(path):  # noqa: PTH112 - text paths throughout
            rules[path] = Access.HIDDEN
    for path, access in sorted(rules.items(), key=lambda rule: (depth(rule[0]), rule[0])):
        if path != "/":
            yield path, access


def _own_tree(path: str) -> bool:
    return any(path == tree or path.startswith(f"{tree}/") for tree in _OWN_TREES)
