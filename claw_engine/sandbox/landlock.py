"""Landlock: the command's own process gives up what the plan does not allow.

It needs no helper program and no rights. It cannot keep a command from connecting to a socket by
path, and on old kernels not from truncating (before ABI 3) or from abstract sockets (before 6).
"""

from __future__ import annotations

import os
import sys

from claw_engine.sandbox.base import Access, Plan, Route, RouteKind, Wrapped

LETTERS = {
    Access.HIDDEN: "h",
    Access.READ: "r",
    Access.WRITE: "w",
    Access.SCRATCH: "h",
}
"""Rules as the launcher reads them; Landlock has no directory of a command's own."""

SCOPES_ABI = 6
NETWORK_ABI = 4
_LAUNCHER = os.path.join(os.path.dirname(__file__), "launcher.py")  # noqa: PTH118,PTH120 - text


class Landlock:
    """Use with the ABI of the running kernel."""

    name = "landlock"

    def __init__(self, abi: int, python: str = sys.executable) -> None:
        self.abi = abi
        self._python = python

    def wrap(self, plan: Plan) -> Wrapped:
        options = [] if plan.network else ["--no-network"]
        options += [f"{LETTERS[access]}:{path}" for path, access in plan.rules.items()]
        argv = (self._python, "-I", "-S", _LAUNCHER, *options, "--", *plan.argv)
        return Wrapped(argv, plan.env)

    def closes(self, route: Route, *, network: bool) -> bool:
        match route.kind:
            case RouteKind.SOCKET:
                return False
            case RouteKind.FILE:
                return True
            case RouteKind.ABSTRACT:
                return self.abi >= SCOPES_ABI
            case RouteKind.TCP:
                return not network and self.abi >= NETWORK_ABI
