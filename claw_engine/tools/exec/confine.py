"""Confinement as exec uses it: every child gets it, and in one mode it replaces the question.

Knows the keeper of the sandbox room; which backend there is, is the keeper's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from claw_engine.approvals.policy import ExecPolicy, PermissionMode
from claw_engine.sandbox.base import Scope, Wrapped
from claw_engine.sandbox.box import Box
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sandbox.keeper import ConfinementBroken, Keeper
from claw_engine.tools.base import ToolContext, ToolError, ToolResult
from claw_engine.tools.exec.boxed import Boxed
from claw_engine.tools.guard import workspace_is_closed


class Confinement:
    """Without a keeper (tests, a program that only uses the tools) nothing is confined."""

    host = "gateway"

    def __init__(self, keeper: Keeper | None = None, boxes: Boxes | None = None) -> None:
        self._keeper = keeper
        self._boxes = boxes

    def boxed(
        self, box: Box, command: str, overrides: Mapping[str, str], *, terminal: bool,
        path_prepend: Sequence[str],
    ) -> Boxed:  # fmt: skip
        """The same for one command in a sandbox. Raises ToolError where there are none."""
        if self._boxes is None:
            raise ToolError("exec: there are no sandboxes here.")
        return Boxed(
            self._boxes, box, command, overrides, terminal=terminal, path_prepend=path_prepend
        )

    @property
    def label(self) -> str:
        """What the approval card says: the backend, or none."""
        return self._keeper.name if self._keeper is not None else "none"

    def told(self, result: ToolResult) -> ToolResult:
        """Nothing to add: this machine is where commands run."""
        return result

    async def ready(self) -> None:
        """Wait until it is known what works. Raises ToolError when nothing may run."""
        if self._keeper is None:
            return
        await self._keeper.check()
        try:
            self._keeper.demand()
        except ConfinementBroken as broken:
            raise ToolError(broken.title, hint=broken.hint) from broken

    async def replaces_asking(self, mode: PermissionMode, policy: ExecPolicy) -> bool:
        """Whether a command that would ask may run unasked, confined to the workspace.

        Never where a route stays open, where the policy refuses, or asks for everything.
        """
        if mode is not PermissionMode.WORKSPACE or self._keeper is None or policy.firm:
            return False
        return self._keeper.confines and await asyncio.to_thread(self._keeper.tight)

    def wrap(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        ctx: ToolContext,
        scope: Scope = Scope.MACHINE,
    ) -> Wrapped:
        """The command as it is started. Blocking, a few ms."""
        if self._keeper is None or not self._keeper.confines:
            return Wrapped(tuple(argv), env)
        closed = workspace_is_closed(ctx.state_dir.root, ctx.workspace)
        plan = self._keeper.plan(
            argv, cwd, env, str(ctx.workspace), scope=scope, workspace_closed=closed
        )
        return self._keeper.wrap(plan)
