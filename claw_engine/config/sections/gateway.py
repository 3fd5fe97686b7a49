"""Settings of the gateway's port and of reloading."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from claw_engine.config.sections.base import Amount, Count, Names, Section


class RateLimit(Section, frozen=True):
    """Failed attempts of one address and kind of credential. OpenClaw exempts loopback; we do not
    unless asked to, as any program on the host could try."""

    max_attempts: Count = 10
    window_ms: Count = 60_000
    lockout_ms: Count = 300_000
    exempt_loopback: bool = False


class TrustedProxyAuth(Section, frozen=True):
    """Mode trusted-proxy: a proxy of `gateway.trustedProxies` says who the user is."""

    user_header: str = ""
    required_headers: Names = ()
    allow_users: Names = ()


class GatewayAuth(Section, frozen=True):
    """Who may connect; `mode` None means that it follows from which secret is given."""

    mode: Literal["none", "token", "password", "trusted-proxy"] | None = None
    token: str | None = None
    password: str | None = None
    rate_limit: RateLimit = RateLimit()
    trusted_proxy: TrustedProxyAuth = TrustedProxyAuth()


class ControlUi(Section, frozen=True):
    """Which web pages may connect, as origins: `https://claw.example.org`."""

    allowed_origins: Names = ()
    dangerously_allow_host_header_origin_fallback: bool = False


class HttpTools(Section, frozen=True):
    """What POST /tools/invoke may call besides the policy of the agent."""

    allow: Names = ()
    deny: Names = ()


class Endpoint(Section, frozen=True):
    enabled: bool = False


class HttpEndpoints(Section, frozen=True):
    chat_completions: Endpoint = Endpoint()


class GatewayHttp(Section, frozen=True):
    endpoints: HttpEndpoints = HttpEndpoints()


class Tls(Section, frozen=True):
    """Without paths and with `autoGenerate` a self-signed certificate is made in the state
    directory."""

    enabled: bool = False
    auto_generate: bool = True
    cert_path: str | None = None
    key_path: str | None = None


class GatewayReload(Section, frozen=True):
    mode: Literal["off", "restart", "hot", "hybrid"] = "hybrid"
    debounce_ms: Amount = 300


class GatewaySettings(Section, frozen=True):
    port: Annotated[Count, Meta(le=65535)] = 18789
    mode: Literal["local", "remote"] | None = None
    bind: Literal["auto", "lan", "loopback", "custom", "tailnet"] = "loopback"
    custom_bind_host: str | None = None
    trusted_proxies: Names = ()
    allow_real_ip_fallback: bool = False
    auth: GatewayAuth = GatewayAuth()
    control_ui: ControlUi = ControlUi()
    tools: HttpTools = HttpTools()
    http: GatewayHttp = GatewayHttp()
    tls: Tls = Tls()
    reload: GatewayReload = GatewayReload()
