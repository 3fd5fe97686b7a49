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


class ApprovalResolveParams(Params):
    id: Text
    decision: Literal["allow-once", "allow-always", "deny"]
    reason: str = ""


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
    ]  # fmt: skip
    mode: Literal["webchat", "cli", "ui", "backend", "node", "probe", "test"]
    version: Text
    platform: Text
    display_name: Text | None = None
    device_family: Text | None = None
    model_identifier: Text | None = None
    instance_id: Text | None = None


class ConnectParams(Params):
    """`proof` is the door's; OpenClaw's `auth` and `device` are taken and not looked at."""

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
    device: dict[str, object] | None = None
    auth: dict[str, str] | None = None
    locale: str | None = None
    user_agent: str | None = None


P = TypeVar("P", bound=Params)


def check(method: str, model: type[P], raw: Mapping[str, object]) -> P:
    """The parameters as an object. Raises InvalidParams that names every problem."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = [_sentence(e) for e in error.errors(include_url=False, include_input=False)]
        raise InvalidParams(method, problems) from None


def _sentence(error: ErrorDetails) -> str:
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
        case _:
            return f"at {where}: {error['msg']}"
