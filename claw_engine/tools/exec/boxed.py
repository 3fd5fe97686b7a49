"""Confinement of a command that runs in its session's sandbox; same shape as on this machine.

The sandbox replaces the question, unless a way out of it is open or the policy asks for
everything. Knows the boxes of the sandbox room; which backend carries one is their business.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from claw_engine.approvals.policy import ExecPolicy, PermissionMode
from claw_engine.errors import ClawError
from claw_engine.sandbox.base import Scope, Wrapped
from claw_engine.sandbox.box import Backend, Box
from claw_engine.sandbox.boxes import Boxes
from claw_engine.tools.base import ToolContext, ToolError, ToolResult

_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "COLORTERM", "NO_COLOR")
"""What a box on this machine inherits; a container inherits nothing."""


class Boxed:
    """One command in `box`. `overrides` are the variables of its own."""

    host = "sandbox"

    def __init__(
        self, boxes: Boxes, box: Box, command: str, overrides: Mapping[str, str],
        *, terminal: bool = False, path_prepend: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._boxes = boxes
        self._box = box
        self._command = command
        self._overrides = overrides
        self._terminal = terminal
        self._prepend = tuple(path_prepend)

    @property
    def label(self) -> str:
        """What the approval card says."""
        return self._box.backend.value if self._box.backend is not None else "none"

    def hold(self) -> Callable[[], None]:
        """Its container is kept as it is until the answer is called, once."""
        return self._boxes.containers.hold(self._box.name)

    def told(self, result: ToolResult) -> ToolResult:
        """The result, saying where it came from."""
        where = {"host": self.host, "sandbox": self.label}
        return replace(result, details={**(result.details or {}), **where})

    async def ready(self) -> None:
        """Have the box ready. Raises ToolError when nothing can run in it."""
        try:
            await self._boxes.ready(self._box)
        except ClawError as broken:
            raise ToolError(broken.title, hint=broken.hint) from broken

    async def replaces_asking(self, mode: PermissionMode, policy: ExecPolicy) -> bool:
        """Whether the command runs without a question: by the policy, and nothing leads out."""
        return not policy.firm and await self._boxes.tight(self._box)

    def wrap(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        ctx: ToolContext,
        scope: Scope = Scope.MACHINE,
    ) -> Wrapped:
        """The command as it is started; always the text itself: rules know only this machine."""
        marks = {name: value for name, value in env.items() if name.startswith("CLAW_")}
        command = self._command
        if self._box.backend is Backend.DOCKER:
            own = {**self._overrides, **marks}
            if self._terminal:
                own["TERM"] = env.get("TERM", "dumb")
            if self._prepend:
                command = f'PATH={shlex.quote(":".join(self._prepend))}:"$PATH"; {command}'
            argv = ("/bin/sh", "-lc", command)
        else:
            own = {name: env[name] for name in _KEPT if name in env} | {**self._overrides, **marks}
            argv = ("/bin/sh", "-c", command)
        try:
            return self._boxes.wrap(self._box, argv, cwd, own, tty=self._terminal)
        except ClawError as broken:
            raise ToolError(broken.title, hint=broken.hint) from broken
