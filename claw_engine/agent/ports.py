"""What the agent needs from other rooms, said in its own words.

The runtime can be lifted out and used with anything that fits these shapes. Wired in the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from claw_engine.agent.context.hygiene import Stored
from claw_engine.errors import ClawError
from claw_engine.messages import Message, Usage
from claw_engine.models.base import Model, ModelRef, ToolSpec
from claw_engine.runs import AbortReason
from claw_engine.tools.base import Tool
from claw_engine.trace.noted import Sizes
from claw_engine.trace.ports import Call, CallEnd, PieceLike

if TYPE_CHECKING:
    from pathlib import Path

    from claw_engine.config.settings import Settings
    from claw_engine.sandbox.box import Standing
    from claw_engine.tools.policy.steps import Circumstances

NO_USAGE = Usage()

REPORT_FIELD = "systemPromptReport"
"""Field of a session's entry: what its last system prompt was made of (agent digest §2.5)."""


class Conversation(Protocol):
    """One session's transcript. Writes keep their order and survive an abandoned wait."""

    @property
    def whole(self) -> bool:
        """Whether `messages` can be all there is; a long file is read from its end."""
        ...

    def messages(self) -> Sequence[Stored]: ...
    async def reach(self, chars: int) -> None:
        """Have `messages` hold at least the newest `chars` characters."""
        ...

    async def append(self, *messages: Message) -> Sequence[str]: ...
    def append_soon(self, *messages: Message) -> None: ...
    async def append_custom(self, custom_type: str, data: Mapping[str, object]) -> object: ...
    def customs(self, custom_type: str) -> Sequence[Mapping[str, object]]: ...


class Tracer(Protocol):
    """Takes down every call to a model. Neither method waits or raises."""

    def begin_call(
        self, call: Call, body: bytes, pieces: Sequence[PieceLike], sizes: Sizes
    ) -> None:
        """`body`, which `pieces` make, goes out now."""
        ...

    def end_call(self, run_id: str, call_id: str, end: CallEnd) -> None: ...


class Claim(Protocol):
    """A run's lock on its transcript, which keeps other programs from writing to it.

    `acquire` raises LockHeld; both may be called any number of times. Writes without it are safe
    too: each takes the lock for itself.
    """

    @property
    def transcript(self) -> Conversation: ...
    async def acquire(self) -> object: ...
    def let_go(self) -> None: ...


class Conversations(Protocol):
    async def claim(self, key: str, *, max_hold_s: float) -> Claim: ...


class ModelSource(Protocol):
    """Which model to ask. Raises ModelConfigError."""

    def resolve(self, settings: Settings) -> ModelRef: ...
    def model(self, ref: ModelRef) -> Model: ...


class ToolBox(Protocol):
    """The tools of a run; `specs` gives the same tuple while nothing changed.

    `get` and `validate` raise ToolError with words a model can act on.
    """

    def specs(self) -> tuple[ToolSpec, ...]: ...
    def get(self, name: str) -> Tool: ...
    def validate(self, tool: Tool, args: Mapping[str, object]) -> Mapping[str, object]: ...


class ToolShelf(Protocol):
    """All tools there are, and what the policy leaves of them in a run's circumstances."""

    def under(self, settings: Settings, there: Circumstances) -> ToolBox: ...


class StandingOf(Protocol):
    """Where a run's commands belong. Raises ClawError when its sandbox has no workspace."""

    async def __call__(
        self,
        settings: Settings,
        *,
        session_key: str,
        agent_id: str,
        workspace: Path,
        source: str,
        extra: Mapping[str, object],
    ) -> Standing: ...


class Place(Protocol):
    """The run's place in the lanes: given back while a person decides."""

    def park(self) -> None: ...
    async def unpark(self) -> None: ...


class Inbound(Protocol):
    """A message that wants an answer."""

    @property
    def text(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def received_ms(self) -> int: ...
    @property
    def thinking(self) -> str | None: ...
    @property
    def extra(self) -> Mapping[str, object]: ...


class WorkspaceUnusable(ClawError):
    """The working folder of the agent cannot be made or written."""

    def __init__(self, workspace: Path, error: OSError) -> None:
        here = isinstance(error, FileExistsError)
        why = "it is not a directory" if here else error.strerror or str(error)
        super().__init__(
            f"The workspace {workspace} cannot be used: {why}.",
            hint="Set agents.defaults.workspace, or the agent's own workspace, to a directory "
            "that can be written.",
        )


class RunError(Struct, frozen=True):
    """Why a run failed, in words for a person."""

    title: str
    hint: str = ""

    def to_json(self) -> dict[str, object]:
        return {"title": self.title, "hint": self.hint}


STOPPED = {
    AbortReason.USER: "Stopped by the operator.",
    AbortReason.INTERRUPT: "Stopped: a newer message took its place.",
    AbortReason.SHUTDOWN: "Stopped: the engine shut down.",
    AbortReason.LOST_LOCK: "Stopped: the state directory's lock was lost.",
    AbortReason.DROPPED: "Stopped: the operator took it out of the queue.",
    AbortReason.RESET: "Stopped: the session was started anew.",
}
"""What a stopped run says of its end."""


class RunResult(Struct, frozen=True):
    """The end of a run. `status`: done, failed, aborted or interrupted; times in ms.

    `usage` counts input of the last call and output of all (agent digest §1.3).
    """

    status: str
    stop_reason: str
    text: str = ""
    error: RunError | None = None
    usage: Usage = NO_USAGE
    duration_ms: int = 0
    model: str = ""
    context_window: int = 0
    tool_calls: tuple[Mapping[str, object], ...] = ()
    started_ms: int | None = None
    ended_ms: int | None = None
    report: Mapping[str, object] | None = None
    """What the system prompt was made of (`systemPromptReport`); None if it came to none."""

    def usage_json(self) -> dict[str, object]:
        return usage_json(self.usage)


def usage_json(usage: Usage) -> dict[str, object]:
    """Counters under the trace's names."""
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "total": usage.total,
    }
