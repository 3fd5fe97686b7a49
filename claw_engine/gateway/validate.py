"""The parameters of every method as strict models, and their problems in OpenClaw's words.

Unknown properties are refused by name. This is the only place of the gateway that knows pydantic;
handlers get the finished objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from claw_engine.gateway.errors import InvalidParams

Text = Annotated[str, Field(min_length=1)]
RunId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
"""A caller's idempotency key names a run in logs, files and the environment: visible ASCII."""
Count = Annotated[int, Field(ge=1)]
Millis = Annotated[int, Field(ge=0)]
Thinking = Literal["off", "minimal", "low", "medium", "high", "xhigh"]


class Params(BaseModel):
    """Base of all: closed, strict, frozen, camelCase on the wire; built on first use."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        alias_generator=to_camel,
    )


class NoParams(Params):
    """A method without parameters."""


class HealthParams(Params):
    probe: bool = False


class SessionsListParams(Params):
    limit: Count | None = None
    search: str | None = None


class ChatHistoryParams(Params):
    session_key: Text
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


class ChatSendParams(Params):
    session_key: Text
    message: str
    idempotency_key: RunId
    thinking: Thinking | None = None


class ChatAbortParams(Params):
    session_key: Text
    run_id: Text | None = None


class AgentParams(Params):
    """`timeout` in seconds, as OpenClaw has it."""

    message: Text
    session_key: Text | None = None
    idempotency_key: RunId
    thinking: Thinking | None = None
    timeout: Annotated[int, Field(ge=0)] | None = None


class AgentWaitParams(Params):
    run_id: Text
    timeout_ms: Millis = 30_000


class TraceSubscribeParams(Params):
    session_key: Text | None = None


class ApprovalIdParams(Params):
    id: Text


class GrantParams(Params):
    """A yes for more than this once; `minutes` belongs to the span of that name, a day at most."""

    covers: Literal["exact", "programs"]
    span: Literal["minutes", "session", "lasting"]
    minutes: Annotated[int, Field(ge=1, le=1440)] = 15


class ApprovalResolveParams(Params):
    id: Text
    decision: Literal["allow-once", "allow-always", "deny"]
    reason: str = ""
    grant: GrantParams | None = None


class ApprovalBatchParams(Params):
    ids: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    decision: Literal["allow-once", "allow-always", "deny"]
    reason: str = ""
    grant: GrantParams | None = None


class ApprovalRequestParams(Params):
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
    timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    two_phase: bool = False


class RulesFileParams(Params):
    file: dict[str, object]
    base_hash: str | None = None


class ApprovalHistoryParams(Params):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class PermissionSetParams(Params):
    """`ttl_ms` is for the mode full: how long, an hour at most."""

    mode: Literal["look", "guarded", "workspace", "full"]
    ttl_ms: Annotated[int, Field(gt=0)] | None = None


class EngineStopParams(Params):
    when: Literal["now", "idle"]


class ClientInfo(Params):
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
    build_id: Annotated[str, Field(max_length=96)] | None = None
    time_zone: Annotated[str, Field(max_length=64)] | None = None


class DeviceProof(Params):
    """A device's key and its signature over the handshake (gateway digest §1.5)."""

    id: Text
    public_key: Text
    signature: Text
    signed_at: Millis
    nonce: Text | None = None


class ConnectAuth(Params):
    """The secrets a client offers. The last three are for services we do not have."""

    token: str | None = None
    device_token: str | None = None
    password: str | None = None
    bootstrap_token: str | None = None
    approval_runtime_token: str | None = None
    agent_runtime_identity_token: str | None = None


class ConnectParams(Params):
    """Both protocols' parameters in one closed schema. `proof` is for the local door only."""

    min_protocol: Count
    max_protocol: Count
    client: ClientInfo
    role: Text = "operator"
    scopes: tuple[str, ...] = Field(default=(), strict=False)
    caps: tuple[str, ...] = Field(default=(), strict=False)
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
        return model.model_validate(raw)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise InvalidParams(method, [_sentence(e, protocol) for e in found]) from None


def _sentence(error: ErrorDetails, protocol: int | None) -> str:
    path = [str(step) for step in error["loc"]]
    where = "/" + "/".join(path)
    match error["type"]:
        case "extra_forbidden":
            parent = "/" + "/".join(path[:-1]) if path[:-1] else "root"
            return f"at {parent}: unexpected property '{path[-1]}'"
        case "missing":
            return f"must have required property '{path[-1]}'"
        case "string_too_short":
            return f"at {where}: must NOT have fewer than 1 characters"
        case "literal_error" if protocol is not None and protocol >= 4:
            return f"at {where}: must be equal to one of the allowed values"
        case "literal_error" if protocol is not None:
            constant = f"at {where}: must be equal to constant"
            return f"{constant}; at {where}: must match a schema in anyOf"
        case _:
            return f"at {where}: {error['msg']}"
