"""What a tool is and what a call may use; knows no particular tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from claw_engine.approvals.model import ApprovalRecord
from claw_engine.approvals.policy import PermissionMode
from claw_engine.errors import ClawError
from claw_engine.paths import StateDir
from claw_engine.runs import AbortScope
from claw_engine.sandbox.box import Standing
from claw_engine.world import World

if TYPE_CHECKING:  # only names of types: a tool file imports what it uses itself
    from claw_engine.approvals.broker import Broker
    from claw_engine.approvals.store import ExecApprovals
    from claw_engine.config.settings import Settings


class ToolResult(Struct, frozen=True):
    """What the model gets back. `details` stay in the transcript, not in the request."""

    text: str
    is_error: bool = False
    details: Mapping[str, object] | None = None


def guarded() -> PermissionMode:
    """The mode where nobody chose one."""
    return PermissionMode.GUARDED


class ToolError(ClawError):
    """A call that cannot be done as asked; its sentence goes to the model, which can act on it."""


class OperatorWait(Protocol):
    """Wrap every wait for a person in this: the run is parked while all its calls are inside."""

    def __call__(self) -> AbstractAsyncContextManager[None]: ...


class ToolContext(Struct, frozen=True):
    """What one tool call may use. `why` are the model's words before the call."""

    run_id: str
    session_key: str
    agent_id: str
    tool_call_id: str
    workspace: Path
    state_dir: StateDir
    why: str
    world: World
    scope: AbortScope
    settings: Settings
    approvals: Broker
    exec_approvals: ExecApprovals
    output: Callable[[str], None]
    operator_wait: OperatorWait
    on_approval: Callable[[ApprovalRecord], None]
    mode: Callable[[], PermissionMode] = guarded
    """The permission mode at this moment."""
    notes: tuple[str, ...] = ()
    """What the operator should know about this call when asked, before all other reasons."""
    external: bool = False
    """The run answers a text that nobody with a say wrote: nothing is looser than usual for it."""
    standing: Standing = Standing()
    """Where commands belong: the session's sandbox, and what the operator granted."""
    readable: tuple[str, ...] = ()
    """Folders that may be read like the workspace: of skills, of the manual."""


class Tool(Protocol):
    """`summary` is one line for the prompt, `parameters` a JSON schema object."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, object]: ...

    async def run(self, args: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        """Do it. Raises ToolError (an error result) and CancelledError; nothing else escapes."""
        ...
