"""The shared secret of the port and whether a client knows it. Pure.

Sources, first found wins: environment, configuration (gateway digest §1.4).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from claw_engine.config.sections.gateway import GatewayAuth

AuthMode = Literal["none", "token", "password", "trusted-proxy"]

TOKEN_ENV = ("OPENCLAW_GATEWAY_TOKEN", "CLAWDBOT_GATEWAY_TOKEN")
PASSWORD_ENV = ("OPENCLAW_GATEWAY_PASSWORD",)


class Secrets(Struct, frozen=True):
    """What is asked of clients. `problem` says why nobody can be let in."""

    mode: AuthMode
    token: str = ""
    password: str = ""
    problem: str = ""

    def __repr__(self) -> str:
        return f"Secrets(mode={self.mode!r})"

    @property
    def shared(self) -> bool:
        """Whether there is a secret at all."""
        return bool(self.token if self.mode == "token" else self.password)


class Verdict(Struct, frozen=True):
    """`method` is how it was shown; `reason` why not (gateway digest §1.4). `tried`: a wrong
    secret was offered, which counts against the client."""

    ok: bool
    method: str = ""
    reason: str = ""
    tried: bool = False


def resolve(auth: GatewayAuth, env: Mapping[str, str]) -> Secrets:
    """The secrets in force."""
    token = _first(env, TOKEN_ENV) or auth.token or ""
    password = _first(env, PASSWORD_ENV) or auth.password or ""
    if auth.mode is not None:
        return Secrets(auth.mode, token, password)
    if token and password:
        return Secrets("token", token, password, "both gateway.auth.token and gateway.auth.password"
                       " are set: say in gateway.auth.mode which one counts")  # fmt: skip
    return Secrets("password" if password else "token", token, password)


def check(
    secrets: Secrets, token: str | None, password: str | None, *, local: bool = False
) -> Verdict:
    """Whether what a client offers is the secret. Web pages send one secret in both fields."""
    match secrets.mode:
        case "none":
            return Verdict(True, "none") if local else Verdict(False, reason="none_not_local")
        case "trusted-proxy":
            return Verdict(False, reason="proxy_user_missing")
        case "token":
            return _compare("token", secrets.token, token, password)
        case "password":
            return _compare("password", secrets.password, password, token)


def _compare(kind: str, secret: str, offered: str | None, other: str | None) -> Verdict:
    if not secret:
        return Verdict(False, reason=f"{kind}_missing_config")
    if any(text and same(text, secret) for text in (offered, other)):
        return Verdict(True, kind)
    if not offered:
        return Verdict(False, reason=f"{kind}_missing", tried=bool(other))
    return Verdict(False, reason=f"{kind}_mismatch", tried=True)


def same(left: str, right: str) -> bool:
    """Equality that takes as long whatever differs."""
    return hmac.compare_digest(left.encode("utf-8", "replace"), right.encode("utf-8", "replace"))


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((env[name].strip() for name in names if env.get(name, "").strip()), "")
