"""Audits who can reach the gateway's port and what they need for it. Reads settings only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from claw_engine.audit import Finding, Severity, Subject

SHORT_TOKEN = 24
"""Characters below which a token counts as too short (gateway digest §6.6)."""

HARMLESS_TOOLS = frozenset({"session_status", "sessions_list", "memory_search", "memory_get"})


def check(subject: Subject) -> Iterator[Finding]:
    gateway = subject.settings.gateway
    auth, far = gateway.auth, gateway.bind != "loopback"
    secret = bool(auth.token or auth.password)
    # Without a mode the engine makes a token of its own; only a chosen `none` is none.
    open_door = auth.mode == "none"
    if open_door and far:
        yield Finding(
            "gateway.bind_no_auth", Severity.CRITICAL,
            "The gateway listens on the network without asking for anything.",
            f"gateway.bind is {gateway.bind} and gateway.auth.mode is none.",
            "Set gateway.auth.mode to token, or gateway.bind to loopback.",
        )  # fmt: skip
    elif open_door:
        yield Finding(
            "gateway.loopback_no_auth", Severity.CRITICAL,
            "Every program on this machine can use the gateway.",
            "gateway.auth.mode is none; a proxy or a web page may reach loopback too.",
            "Set gateway.auth.mode to token.",
        )  # fmt: skip
    yield from _http(subject, open_door=open_door, far=far)
    if auth.token and len(auth.token) < SHORT_TOKEN:
        yield Finding(
            "gateway.token_too_short", Severity.WARN, "The gateway's token is short.",
            f"It has {len(auth.token)} characters; fewer than {SHORT_TOKEN} can be guessed.",
            "Take a longer one, or leave it out: one is made.",
        )  # fmt: skip
    yield from _proxies(subject, secret=secret)
    yield from _pages(subject, far=far)
    match subject.value("gateway", "tailscale", "mode"):
        case "funnel":
            yield Finding(
                "gateway.tailscale_funnel", Severity.CRITICAL,
                "The gateway is open to the whole internet.", "gateway.tailscale.mode is funnel.",
                "Use serve, which only your own devices reach.",
            )  # fmt: skip
        case "serve":
            yield Finding(
                "gateway.tailscale_serve", Severity.INFO,
                "The gateway is reachable for your Tailscale network.",
                "gateway.tailscale.mode is serve.",
            )  # fmt: skip
    raw_auth = subject.value("gateway", "auth")
    stated = isinstance(raw_auth, Mapping) and "rateLimit" in raw_auth
    if far and secret and not stated:
        yield Finding(
            "gateway.auth_no_rate_limit", Severity.WARN,
            "No limit for failed attempts is stated for a gateway on the network.",
            f"gateway.auth.rateLimit is not set; {auth.rate_limit.max_attempts} attempts hold.",
            "State gateway.auth.rateLimit as you want it.",
        )  # fmt: skip


def _http(subject: Subject, *, open_door: bool, far: bool) -> Iterator[Finding]:
    gateway = subject.settings.gateway
    if open_door and gateway.http.endpoints.chat_completions.enabled:
        yield Finding(
            "gateway.http.no_auth", Severity.CRITICAL if far else Severity.WARN,
            "The HTTP endpoints ask for nothing.", "gateway.auth.mode is none.",
            "Set gateway.auth.mode to token.",
        )  # fmt: skip
    risky = sorted(set(gateway.tools.allow) - HARMLESS_TOOLS)
    if risky:
        yield Finding(
            "gateway.tools_invoke_http.dangerous_allow",
            Severity.CRITICAL if far else Severity.WARN,
            "Tools that are kept from HTTP calls were allowed there.",
            f"gateway.tools.allow: {', '.join(risky)}.", "Take them out.",
        )  # fmt: skip


def _proxies(subject: Subject, *, secret: bool) -> Iterator[Finding]:
    gateway = subject.settings.gateway
    auth, proxies = gateway.auth, gateway.trusted_proxies
    if gateway.bind == "loopback" and not proxies and gateway.control_ui.allowed_origins:
        yield Finding(
            "gateway.trusted_proxies_missing", Severity.WARN,
            "A proxy in front would make everyone look local.",
            "Web origins are allowed, but gateway.trustedProxies is empty.",
            "Name the proxy's address, if there is one.",
        )  # fmt: skip
    if gateway.allow_real_ip_fallback:
        far = gateway.bind != "loopback"
        yield Finding(
            "gateway.real_ip_fallback_enabled", Severity.CRITICAL if far else Severity.WARN,
            "Whoever sends X-Real-IP chooses the address they seem to come from.",
            "gateway.allowRealIpFallback is on.", "Let the proxy set X-Forwarded-For instead.",
        )  # fmt: skip
    if auth.mode != "trusted-proxy":
        return
    yield Finding(
        "gateway.trusted_proxy_auth", Severity.CRITICAL,
        "A proxy decides alone who is the operator.", "gateway.auth.mode is trusted-proxy.",
        "Be sure that nothing else reaches the port.",
    )  # fmt: skip
    if not proxies:
        yield Finding(
            "gateway.trusted_proxy_no_proxies", Severity.CRITICAL, "No proxy is named.",
            "gateway.trustedProxies is empty.", "Name the proxy's address.",
        )  # fmt: skip
    if not auth.trusted_proxy.user_header:
        yield Finding(
            "gateway.trusted_proxy_no_user_header", Severity.CRITICAL,
            "No header is named that holds the user.",
            "gateway.auth.trustedProxy.userHeader is empty.", "Name it.",
        )  # fmt: skip
    if not auth.trusted_proxy.allow_users:
        yield Finding(
            "gateway.trusted_proxy_no_allowlist", Severity.WARN,
            "Every user of the proxy is let in.",
            "gateway.auth.trustedProxy.allowUsers is empty.", "List yourself.",
        )  # fmt: skip


def _pages(subject: Subject, *, far: bool) -> Iterator[Finding]:
    ui = subject.settings.gateway.control_ui
    if subject.value("gateway", "controlUi", "dangerouslyDisableDeviceAuth") is True:
        yield Finding(
            "gateway.control_ui.device_auth_disabled", Severity.CRITICAL,
            "Web pages connect without a device of their own.",
            "gateway.controlUi.dangerouslyDisableDeviceAuth is on.", "Take it out.",
        )  # fmt: skip
    if subject.value("gateway", "controlUi", "allowInsecureAuth") is True:
        yield Finding(
            "gateway.control_ui.insecure_auth", Severity.WARN,
            "Web pages may sign in without a device of their own.",
            "gateway.controlUi.allowInsecureAuth is on.", "Take it out.",
        )  # fmt: skip
    if ui.dangerously_allow_host_header_origin_fallback:
        yield Finding(
            "gateway.control_ui.host_header_origin_fallback",
            Severity.CRITICAL if far else Severity.WARN,
            "Any page under a name that leads here may connect (DNS rebinding).",
            "gateway.controlUi.dangerouslyAllowHostHeaderOriginFallback is on.",
            "List the origins in gateway.controlUi.allowedOrigins.",
        )  # fmt: skip
    enabled = subject.value("gateway", "controlUi", "enabled")
    if far and enabled is True and not ui.allowed_origins:
        yield Finding(
            "gateway.control_ui.allowed_origins_required", Severity.CRITICAL,
            "A gateway on the network names no web origins.",
            "gateway.controlUi.allowedOrigins is empty.", "List them, or switch controlUi off.",
        )  # fmt: skip
