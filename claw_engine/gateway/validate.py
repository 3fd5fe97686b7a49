"""The parameters of every method as strict models, and their problems in OpenClaw's words.

Unknown properties are refused by name. Handlers get the finished objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeVar

from msgspec import Meta, field

from claw_engine.gateway.errors import InvalidParams
from claw_engine.shapes import (
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    WHOLE,
    Extra,
    Fault,
    Faults,
    Shape,
    read,
)

Text = Annotated[str, Meta(min_length=1)]
RunId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
"""A caller's idempotency key names a run in logs, files and the environment: visible ASCII."""
Count = Annotated[int, Meta(ge=1)]
Millis = Annotated[int, Meta(ge=0)]
Thinking = Literal["off", "minimal", "low", "medium", "high", "xhigh"]


class Params(Shape, frozen=True, kw_only=True):
    """Base of all: closed, strict, frozen, camelCase on the wire; a type is read at first use."""


class OpenParams(Params, frozen=True, kw_only=True):
    """Whatever else was sent is kept in `rest`, unread."""

    extra: ClassVar[Extra] = "keep"
    rest: Mapping[str, object] = field(default_factory=dict, name="(rest)")


class NoParams(Params, frozen=True, kw_only=True):
    """A method without parameters."""


class HealthParams(Params, frozen=True, kw_only=True):
    probe: bool = False


class AgentParams(Params, frozen=True, kw_only=True):
    """`timeout` in seconds, as OpenClaw has it. There are no channels to `deliver` to."""

    message: Text
    session_key: Text | None = None
    agent_id: Text | None = None
    deliver: bool = False
    idempotency_key: RunId
    thinking: Thinking | None = None
    timeout: Annotated[int, Meta(ge=0)] | None = None


class AgentWaitParams(Params, frozen=True, kw_only=True):
    run_id: Text
    timeout_ms: Millis = 30_000


class TraceSubscribeParams(Params, frozen=True, kw_only=True):
    session_key: Text | None = None


class TraceListParams(Params, frozen=True, kw_only=True):
    session_key: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    below: Count | None = field(default=None, name="before")


class TraceRunParams(Params, frozen=True, kw_only=True):
    run_id: Text


class TraceCallsParams(Params, frozen=True, kw_only=True):
    session_key: Text | None = None
    run_id: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    below: Count | None = field(default=None, name="before")


class TraceCallParams(Params, frozen=True, kw_only=True):
    """Neither means the last call there was."""

    call_id: Text | None = None
    session_key: Text | None = None


class TracePartParams(Params, frozen=True, kw_only=True):
    """`offset` and `limit` in characters."""

    call_id: Text
    part_id: Text
    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 65_536


class TraceCompareParams(Params, frozen=True, kw_only=True):
    """`lines` that differ are shown at most."""

    a: Text
    b: Text
    lines: Annotated[int, Meta(ge=1, le=20_000)] = 2_000


class TraceSearchParams(Params, frozen=True, kw_only=True):
    call_id: Text
    text: Text
    limit: Annotated[int, Meta(ge=1, le=5_000)] = 200


class ApprovalIdParams(Params, frozen=True, kw_only=True):
    id: Text


class GrantParams(Params, frozen=True, kw_only=True):
    """A yes for more than this once; `minutes` belongs to the span of that name, a day at most."""

    covers: Literal["exact", "programs"]
    span: Literal["minutes", "session", "lasting"]
    minutes: Annotated[int, Meta(ge=1, le=1440)] = 15


class ApprovalResolveParams(Params, frozen=True, kw_only=True):
    id: Text
    decision: Literal["allow-once", "allow-always", "deny"]
    reason: str = ""
    grant: GrantParams | None = None


class ApprovalBatchParams(Params, frozen=True, kw_only=True):
    ids: Annotated[list[Text], Meta(min_length=1, max_length=1000)]
    decision: Literal["allow-once", "allow-always", "deny"]
    reason: str = ""
    grant: GrantParams | None = None


class ApprovalRequestParams(Params, frozen=True, kw_only=True):
    """A client's own command (gateway digest §1.11); `timeout_ms` a day at most."""

    id: RunId | None = None
    command: Text
    command_argv: list[str] | None = None
    system_run_plan_v2: dict[str, object] | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    node_id: str | None = None
    host: str | None = None
    security: str | None = None
    ask: str | None = None
    agent_id: str | None = None
    resolved_path: str | None = None
    session_key: str | None = None
    turn_source_channel: str | None = None
    turn_source_to: str | None = None
    turn_source_account_id: str | None = None
    turn_source_thread_id: str | int | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | None = None
    two_phase: bool = False


class RulesFileParams(Params, frozen=True, kw_only=True):
    file: dict[str, object]
    base_hash: str | None = None


class ApprovalHistoryParams(Params, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class PermissionSetParams(Params, frozen=True, kw_only=True):
    """`ttl_ms` is for the mode full: how long, an hour at most."""

    mode: Literal["look", "guarded", "workspace", "full"]
    ttl_ms: Annotated[int, Meta(gt=0)] | None = None


class ToolsCatalogParams(Params, frozen=True, kw_only=True):
    agent_id: Text | None = None
    include_plugins: bool = True


class ToolsExplainParams(Params, frozen=True, kw_only=True):
    """No `name` = all tools."""

    name: Text | None = None
    agent_id: Text | None = None
    session_key: Text | None = None


class SandboxExplainParams(Params, frozen=True, kw_only=True):
    session_key: str = "main"


class SandboxRecreateParams(Params, frozen=True, kw_only=True):
    """One of the three says which containers."""

    session_key: str | None = None
    agent_id: str | None = None
    all: bool = False


class EngineStopParams(Params, frozen=True, kw_only=True):
    when: Literal["now", "idle"]


class ClientInfo(Params, frozen=True, kw_only=True):
    """Ids and modes are closed lists (digest §1.1)."""

    id: Literal[
        "webchat-ui", "openclaw-control-ui", "webchat", "cli", "gateway-client", "openclaw-macos",
        "openclaw-ios", "openclaw-android", "node-host", "test", "fingerprint", "openclaw-probe",
        "openclaw-tui", "openclaw-browser-copilot", "openclaw-linux", "openclaw-watchos",
        "openclaw-worker",
    ]  # fmt: skip
    mode: Literal["webchat", "cli", "ui", "backend", "node", "probe", "test", "worker"]
    version: Text
    platform: Text
    display_name: Text | None = None
    device_family: Text | None = None
    model_identifier: Text | None = None
    instance_id: Text | None = None
    build_id: Annotated[str, Meta(max_length=96)] | None = None
    time_zone: Annotated[str, Meta(max_length=64)] | None = None


class DeviceProof(Params, frozen=True, kw_only=True):
    """A device's key and its signature over the handshake (gateway digest §1.5)."""

    id: Text
    public_key: Text
    signature: Text
    signed_at: Millis
    nonce: Text | None = None


class ConnectAuth(Params, frozen=True, kw_only=True):
    """The secrets a client offers. The last three are for services we do not have."""

    token: str | None = None
    device_token: str | None = None
    password: str | None = None
    bootstrap_token: str | None = None
    approval_runtime_token: str | None = None
    agent_runtime_identity_token: str | None = None


class ConnectParams(Params, frozen=True, kw_only=True):
    """Both protocols' parameters in one closed schema. `proof` is for the local door only."""

    min_protocol: Count
    max_protocol: Count
    client: ClientInfo
    role: Text = "operator"
    scopes: tuple[str, ...] = ()
    caps: tuple[str, ...] = ()
    proof: str = ""
    commands: list[str] | None = None
    permissions: dict[str, bool] | None = None
    path_env: str | None = None
    computer_use: dict[str, object] | None = None
    worker_runs: dict[str, object] | None = None
    model_catalog: dict[str, object] | None = None
    device: DeviceProof | None = None
    auth: ConnectAuth | None = None
    locale: str | None = None
    user_agent: str | None = None


P = TypeVar("P", bound=Params)


def check(
    method: str, model: type[P], raw: Mapping[str, object], *, protocol: int | None = None
) -> P:
    """The parameters as an object. Raises InvalidParams that names every problem.

    With a `protocol` the sentences about closed lists are those of its clients, which name no
    allowed value.
    """
    try:
        return read(model, raw)
    except Faults as faults:
        raise InvalidParams(method, [_sentence(f, protocol) for f in faults.all]) from None


_KINDS = {
    TEXT: "string",
    WHOLE: "integer",
    NUMBER: "number",
    TRUTH: "boolean",
    OBJECT: "object",
    LIST: "array",
}


def _sentence(fault: Fault, protocol: int | None) -> str:
    path = [str(step) for step in fault.path]
    where = "/" + "/".join(path)
    if fault.kind == "unexpected":
        parent = "/" + "/".join(path[:-1]) if path[:-1] else "root"
        return f"at {parent}: unexpected property '{path[-1]}'"
    if fault.kind == "missing":
        return f"must have required property '{path[-1]}'"
    if fault.kind == "rule":
        return f"at {where}: {fault.expected}"
    if fault.expected == "a text that is not empty":
        return f"at {where}: must NOT have fewer than 1 characters"
    if fault.choices and protocol is not None:
        if protocol >= 4:
            return f"at {where}: must be equal to one of the allowed values"
        constant = f"at {where}: must be equal to constant"
        return f"{constant}; at {where}: must match a schema in anyOf"
    return f"at {where}: must be {_KINDS.get(fault.expected, fault.expected)}"
