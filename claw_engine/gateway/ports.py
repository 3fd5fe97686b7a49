"""What the gateway needs from the rooms below, as small interfaces.

The composition root hands in one object for each; tests hand in fakes. Lanes and runs are used as
they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct, field

from claw_engine.approvals.answers import Answer
from claw_engine.approvals.grants import Grant, Wanted
from claw_engine.approvals.model import ApprovalAsk, ApprovalRecord, Decision
from claw_engine.approvals.policy import PermissionMode, Rule
from claw_engine.approvals.rulesfile import Snapshot
from claw_engine.errors import ClawError
from claw_engine.events import Event, EventBus
from claw_engine.gateway.client_ports import AgentsPort, CommandsPort, EditsPort, SkillsPort
from claw_engine.gateway.kept_rows import KeptRows
from claw_engine.gateway.tool_port import ToolsPort
from claw_engine.gateway.trace_port import TracePort
from claw_engine.lanes import Lanes
from claw_engine.probes import Probes
from claw_engine.protocol.trace import TraceEvent
from claw_engine.runs import Runs
from claw_engine.world import Clock, Ids

if TYPE_CHECKING:
    from claw_engine.gateway.logs_port import LogsPort
    from claw_engine.gateway.usage_port import UsageSource


class Submission(Struct, frozen=True):
    """A message for a session. `run_id` is the caller's idempotency key; `timeout_s` seconds."""

    run_id: str
    session_key: str
    text: str
    source: str
    thinking: str | None = None
    timeout_s: int | None = None


class RunReport(Struct, frozen=True):
    """How a run ended. Times in ms; `error` is title and hint."""

    run_id: str
    status: str
    text: str = ""
    stop_reason: str = ""
    error: tuple[str, str] | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    duration_ms: int = 0
    usage: Mapping[str, object] | None = None
    tool_calls: Sequence[Mapping[str, object]] = ()


class Taken(Struct, frozen=True):
    """What became of a message at the door.

    `repeat`: its id was accepted before, perhaps by an engine before this one; nothing was
    started. `stopped`: it meant "stop" and these runs are stopping; None for any other message.
    """

    repeat: bool = False
    stopped: Sequence[str] | None = None


class Intake(Protocol):
    """Where messages go in and runs come out."""

    async def submit(self, message: Submission) -> Taken:
        """Returns once the message is durable. Raises ClawError if it cannot be accepted."""
        ...

    def known(self, run_id: str) -> Literal["active", "ended"] | None:
        """Whether a message with this id was accepted before, and how far it is."""
        ...

    def abort(self, session_key: str, run_id: str | None) -> Sequence[str]:
        """Stop one run or all of a session; the ids that are stopping now."""
        ...

    async def wait(self, run_id: str, timeout_s: float | None) -> RunReport | None:
        """The end of a run; None after `timeout_s` or for a run nobody knows."""
        ...

    def live(self, session_key: str | None) -> Sequence[Sequence[TraceEvent]]:
        """The trace so far of each run that is going on, deltas merged."""
        ...


class SessionRow(Struct, frozen=True):
    """What the session list knows of one session; `updated_at` in ms."""

    key: str
    session_id: str | None
    updated_at: int
    fields: Mapping[str, object]
    """Optional fields of the row: displayName, model, totalTokens, abortedLastRun, …"""


class History(Struct, frozen=True):
    """A conversation as JSON messages, oldest first."""

    session_id: str | None
    messages: Sequence[Mapping[str, object]]
    thinking_level: str = "off"
    verbose_level: str | None = None


class SessionNews(Struct, frozen=True):
    """A message that was stored, or the word for what else happened to a session."""

    key: str
    message: Mapping[str, object] | None = None
    reason: str = ""


class SessionsPort(Protocol):
    def canonical(self, key: str) -> str:
        """The full form of a session key. Raises ClawError for one that cannot be."""
        ...

    async def rows(self, limit: int | None = None) -> Sequence[SessionRow]:
        """The newest `limit` sessions, or all, newest first. Reads the ends of files."""
        ...

    async def index(self) -> Sequence[tuple[str, int]]:
        """Key and `updated_at` of every session, newest first. Reads memory only."""
        ...

    def row(self, key: str) -> SessionRow | None:
        """One session as `rows` shows it, without what its file holds."""
        ...

    def news(self, event: Event) -> SessionNews | None:
        """What an event of the bus tells of one session."""
        ...

    async def history(self, key: str, limit: int) -> History: ...


class ApprovalsPort(Protocol):
    def pending(self) -> Sequence[ApprovalRecord]: ...

    def get(self, id_or_prefix: str) -> ApprovalRecord | None: ...

    async def resolve(
        self,
        approval_id: str,
        decision: Decision,
        by: str,
        reason: str = "",
        grant: Wanted | None = None,
    ) -> ApprovalRecord:
        """Decide; the first answer wins. Raises ClawError for one that is not pending."""
        ...

    async def resolve_many(
        self, approval_ids: Sequence[str], answer: Answer
    ) -> Sequence[ApprovalRecord | ClawError]:
        """One answer to several, each its record or why it is not decided."""
        ...

    async def open(
        self, ask: ApprovalAsk, timeout_ms: int | None = None, approval_id: str | None = None
    ) -> ApprovalRecord:
        """Put a question; returns once it waits. Raises ClawError."""
        ...

    async def wait(self, approval_id: str) -> ApprovalRecord:
        """The end of a request. Raises UnknownApproval."""
        ...

    async def withdraw(self, approval_id: str, reason: str) -> None: ...

    async def history(self, limit: int) -> Sequence[ApprovalRecord]: ...


class GrantsPort(Protocol):
    """A yes that holds for a while."""

    def list(self) -> Sequence[Grant]: ...

    async def remove(self, grant_id: str) -> Grant | None:
        """The grant taken back; None when there is none. Raises ClawError."""
        ...


class RulesFilePort(Protocol):
    """The rules file as a whole. Both raise ClawError."""

    async def snapshot(self) -> Snapshot: ...

    async def replace(self, file: dict[str, object], base_hash: str | None) -> Snapshot: ...


class RulesPort(Protocol):
    """The operator's standing rules about commands."""

    def rules(self) -> Sequence[Rule]: ...

    async def remove(self, rule_id: str) -> Rule | None:
        """The rule taken back; None when there is none. Raises ClawError."""
        ...


class PausePort(Protocol):
    """The pause switch; works at once, then is written down. Raises ClawError."""

    async def pause(self) -> None: ...

    async def resume(self) -> None: ...

    async def configure(self, lane: str, width: int | None) -> int:
        """A lane's width, None for the configuration's; the one in force."""
        ...


class QueuePort(Protocol):
    """What waits, runs that a restart cut short, and sessions that begin anew."""

    def drop(self, run_id: str) -> None: ...

    def move(self, run_id: str, position: int) -> None: ...

    def blockers(self, run_id: str) -> Sequence[str]: ...

    def interrupted(self) -> Sequence[Mapping[str, object]]: ...

    async def decide(self, run_id: str, action: Literal["resume", "discard"]) -> None: ...

    async def reset(self, key: str, reason: str) -> Mapping[str, object]:
        """Stop the session's runs and begin it anew; its new entry. Raises ClawError."""
        ...

    async def delete(self, key: str, *, keep_transcript: bool) -> Sequence[str] | None: ...

    async def patch(self, key: str, fields: Mapping[str, object]) -> Mapping[str, object]: ...


class BackgroundPort(Protocol):
    """Commands that go on without a run."""

    async def kill_all(self, reason: str) -> Sequence[str]:
        """Stop them all, with all their processes; the names of those that ran."""
        ...


class PermissionPort(Protocol):
    """The permission mode of the whole engine."""

    @property
    def full_until_ms(self) -> int | None: ...

    def mode(self) -> PermissionMode: ...

    async def switch(self, mode: PermissionMode, ttl_ms: int | None) -> None:
        """Raises ClawError for a time that the mode does not have."""
        ...


class SandboxPort(Protocol):
    """The sandboxes of sessions."""

    async def rows(self) -> Sequence[Mapping[str, object]]: ...

    async def explain(self, session_key: str) -> Mapping[str, object]:
        """Where the session's commands run. Raises ClawError for a wrong key."""
        ...

    async def recreate(
        self, *, session_key: str | None, agent_id: str | None, everything: bool
    ) -> Sequence[str]:
        """Throw containers away; their names. Raises ClawError."""
        ...


class AuditPort(Protocol):
    """The security audit of the whole engine."""

    async def __call__(self) -> Mapping[str, object]:
        """The report of gateway digest §6.6. Raises ClawError for a broken configuration."""
        ...


class ModelsPort(Protocol):
    def current(self) -> Mapping[str, object]:
        """{name, provider, id, isAI, contextWindow, error|null} of the default model."""
        ...

    def rows(self) -> Sequence[Mapping[str, object]]: ...


class PolicyPort(Protocol):
    """The tools and the policy about them. Both raise InvalidRequest for what they do not know."""

    def catalog(self, agent_id: str | None, *, plugins: bool) -> Mapping[str, object]: ...

    def explain(
        self, name: str | None, agent_id: str | None, session_key: str | None
    ) -> Mapping[str, object]: ...


class ConfigPort(Protocol):
    async def snapshot(self) -> Mapping[str, object]:
        """The `config.get` payload, secrets redacted."""
        ...


class ConfigFilePort(Protocol):
    """Changing the configuration's file. Both raise InvalidRequest and ConfigError, and answer
    with the configuration as it is then, secrets redacted; without `restarts` somebody else sees
    to a restart."""

    @property
    def path(self) -> Path: ...

    async def replace(
        self, raw: str, base_hash: str | None, *, restarts: bool
    ) -> Mapping[str, object]: ...

    async def patch(
        self, raw: str, base_hash: str | None, *, restarts: bool
    ) -> Mapping[str, object]: ...


class HostPort(Protocol):
    """The engine itself. `started_ms` is wall time."""

    @property
    def version(self) -> str: ...
    @property
    def state_dir(self) -> str: ...
    @property
    def mode(self) -> Literal["embedded", "headless"]: ...
    @property
    def started_ms(self) -> int: ...
    @property
    def permission_mode(self) -> str: ...
    @property
    def bypass_warning(self) -> str | None: ...

    def notices(self) -> Sequence[Mapping[str, object]]: ...

    def stop(self, when: Literal["now", "idle"]) -> None:
        """Ask the engine to stop; returns at once."""
        ...

    def restart(self, reason: str, delay_ms: int = 0) -> Mapping[str, object]:
        """Ask for a restart in this process; returns at once what becomes of it."""
        ...

    def leave_note(self, payload: Mapping[str, object]) -> Awaitable[None]:
        """What the next engine is to say. Raises OSError."""
        ...


class GatewayParts(Struct, frozen=True):
    """Everything the gateway is wired to."""

    clock: Clock
    ids: Ids
    bus: EventBus
    runs: Runs
    lanes: Lanes
    pauses: PausePort
    intake: Intake
    sessions: SessionsPort
    approvals: ApprovalsPort
    models: ModelsPort
    config: ConfigPort
    host: HostPort
    background: BackgroundPort | None = None
    queue: QueuePort | None = None
    rules: RulesPort | None = None
    grants: GrantsPort | None = None
    rules_file: RulesFilePort | None = None
    permission: PermissionPort | None = None
    probes: Probes | None = None
    sandbox: SandboxPort | None = None
    audit: AuditPort | None = None
    tools: ToolsPort | None = None
    policy: PolicyPort | None = None
    agents: AgentsPort | None = None
    commands: CommandsPort | None = None
    edits: EditsPort | None = None
    skills: SkillsPort | None = None
    config_file: ConfigFilePort | None = None
    logs: LogsPort | None = None
    trace: Callable[[], TracePort] | None = None
    usage: UsageSource | None = None
    kept: KeptRows = field(default_factory=KeptRows)
