"""Settings of the gateway's port and of reloading."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from claw_engine.config.sections.base import Amount, Count, Names, Section, defaults


class GatewayAuth(Section):
    """Who may connect; `mode` None means that it follows from which secret is given."""

    mode: Literal["none", "token", "password", "trusted-proxy"] | None = None
    token: str | None = Field(default=None, repr=False)
    password: str | None = Field(default=None, repr=False)


class GatewayReload(Section):
    mode: Literal["off", "restart", "hot", "hybrid"] = "hybrid"
    debounce_ms: Amount = 300


class GatewaySettings(Section):
    port: Annotated[Count, Field(le=65535)] = 18789
    mode: Literal["local", "remote"] | None = None
    bind: Literal["auto", "lan", "loopback", "custom", "tailnet"] = "loopback"
    custom_bind_host: str | None = None
    trusted_proxies: Names = ()
    auth: GatewayAuth = defaults(GatewayAuth)
    reload: GatewayReload = defaults(GatewayReload)
