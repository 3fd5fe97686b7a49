"""Who a client of the network port is and what it may: the order of gateway digest §1.3.

Web page allowed? → shared secret → device proof → device token → pairing. Scopes never grow on the
way in: a device gets what it asks for of what it was granted; the rest becomes a request that the
operator sees (case SE-03).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.gateway.auth import proof, secrets
from claw_engine.gateway.auth.device_rows import Claim, beyond
from claw_engine.gateway.auth.devices import Devices
from claw_engine.gateway.auth.limiter import FailureLimiter, Kind
from claw_engine.gateway.auth.place import Arrival, Place, locate, origin_allowed
from claw_engine.gateway.auth.secrets import Secrets, Verdict
from claw_engine.gateway.close import Close
from claw_engine.gateway.connection import Admit
from claw_engine.gateway.dialect import device_code, token_hint
from claw_engine.gateway.handshake import Refusal, granted, identity_of
from claw_engine.gateway.peer import Identity
from claw_engine.gateway.validate import ConnectAuth, ConnectParams, DeviceProof
from claw_engine.world import Clock

log = logging.getLogger(__name__)

WEB_CLIENTS = frozenset({"openclaw-control-ui", "webchat", "webchat-ui"})
"""Clients that are web pages: they must say of which origin."""

KEEPS_SCOPES = frozenset({("cli", "cli"), ("gateway-client", "backend")})
"""Clients (id, mode) that keep their scopes without a device under protocol 4 (its digest §1.5)."""

REASON_CODES = {
    "token_missing": "AUTH_TOKEN_MISSING",
    "token_mismatch": "AUTH_TOKEN_MISMATCH",
    "token_missing_config": "AUTH_TOKEN_NOT_CONFIGURED",
    "password_missing": "AUTH_PASSWORD_MISSING",
    "password_mismatch": "AUTH_PASSWORD_MISMATCH",
    "password_missing_config": "AUTH_PASSWORD_NOT_CONFIGURED",
    "device_token_mismatch": "AUTH_DEVICE_TOKEN_MISMATCH",
    "rate_limited": "AUTH_RATE_LIMITED",
}


class Gatekeeper:
    """Decides about every `connect` of the port and every HTTP credential.

    `warn(code, text, hint)` reaches the operator, once for each code.
    """

    def __init__(
        self,
        clock: Clock,
        settings: Callable[[], GatewaySettings],
        env: Mapping[str, str],
        devices: Devices,
        warn: Callable[[str, str, str], None],
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._env = env
        self._devices = devices
        self._warn = warn
        self._limiter = FailureLimiter(clock)

    @property
    def secrets(self) -> Secrets:
        """What is asked of clients now."""
        return secrets.resolve(self._settings().auth, self._env)

    def place(self, arrival: Arrival) -> Place:
        """Where a connection comes from; the operator hears of headers that nobody vouches for."""
        settings = self._settings()
        place = locate(arrival, settings.trusted_proxies, real_ip=settings.allow_real_ip_fallback)
        if place.hidden:
            self._warn(
                "untrusted-proxy",
                f"A connection from {arrival.peer_ip} carries a proxy's headers, and that address "
                "is no trusted proxy: it is treated as remote.",
                "Name the proxy in gateway.trustedProxies if it is yours.",
            )
        return place

    async def admit(self, nonce: str, asked: Admit, arrival: Arrival) -> Identity:
        """Who it is. Raises Refusal."""
        params = asked.params
        self._check_origin(params, asked.protocol, arrival)
        place = self.place(arrival)
        auth = params.auth or ConnectAuth()
        verdict = self.shared(auth.token, auth.password, arrival, place)
        identity = identity_of(params, asked.protocol, granted(params.scopes))
        identity = replace(identity, method=verdict.method, remote_ip=place.ip)
        if params.device is None:
            return self._without_device(params, identity, verdict)
        return await self._device(nonce, params, params.device, arrival, place, identity, verdict)

    def shared(
        self, token: str | None, password: str | None, arrival: Arrival, place: Place
    ) -> Verdict:
        """Whether the shared secret is known, within the limit of wrong guesses."""
        limits = self._settings().auth.rate_limit
        known = self.secrets
        if known.mode == "trusted-proxy":
            return self._proxy_user(arrival)
        if (token or password) and self._limiter.locked_ms("shared-secret", place.ip, limits):
            return Verdict(False, reason="rate_limited")
        verdict = secrets.check(known, token, password, local=place.local)
        if verdict.ok and verdict.method != "none":
            self._limiter.succeeded("shared-secret", place.ip)
        return verdict

    def failed(self, kind: Kind, place: Place) -> None:
        """A credential was wrong and no other was right."""
        self._limiter.failed(kind, place.ip, self._settings().auth.rate_limit)

    def locked_ms(self, kind: Kind, place: Place) -> int:
        return self._limiter.locked_ms(kind, place.ip, self._settings().auth.rate_limit)

    def _proxy_user(self, arrival: Arrival) -> Verdict:
        settings = self._settings()
        wanted = settings.auth.trusted_proxy
        through = locate(arrival, settings.trusted_proxies)
        trusted = locate(Arrival(arrival.peer_ip, {**arrival.headers, "via": "x"}),
                         settings.trusted_proxies)  # fmt: skip
        user = arrival.headers.get(wanted.user_header.lower(), "").strip()
        missing = [h for h in wanted.required_headers if not arrival.headers.get(h.lower())]
        if not wanted.user_header or through.hidden or trusted.hidden or not user or missing:
            return Verdict(False, reason="proxy_user_missing")
        if wanted.allow_users and user not in wanted.allow_users:
            return Verdict(False, reason="proxy_user_not_allowed")
        return Verdict(True, "trusted-proxy")

    def _check_origin(self, params: ConnectParams, protocol: int, arrival: Arrival) -> None:
        if self.page_allowed(arrival, needed=params.client.id in WEB_CLIENTS):
            return
        details = {"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "origin missing or invalid"}
        raise Refusal(
            Close.UNAUTHORIZED,
            "origin not allowed (open the Control UI from the gateway host or allow it in "
            "gateway.controlUi.allowedOrigins)",
            details if protocol >= 4 else None,
        )

    def page_allowed(self, arrival: Arrival, *, needed: bool) -> bool:
        """Whether the web page behind a request, if there is one, may talk to us."""
        ui = self._settings().control_ui
        return origin_allowed(
            arrival, ui.allowed_origins, needed=needed,
            host_fallback=ui.dangerously_allow_host_header_origin_fallback,
        )  # fmt: skip

    def _without_device(
        self, params: ConnectParams, identity: Identity, verdict: Verdict
    ) -> Identity:
        auth = params.auth
        place = Place(identity.remote_ip, local=False)
        if not verdict.ok:
            offered = auth is not None and bool(auth.token or auth.password or auth.device_token)
            if offered or verdict.reason in ("none_not_local", "proxy_user_not_allowed"):
                raise self._unauthorized(verdict, identity, place, with_device=False)
            raise Refusal(
                Close.UNAUTHORIZED, "device identity required",
                {"code": "DEVICE_IDENTITY_REQUIRED"}, code="NOT_PAIRED",
            )  # fmt: skip
        if identity.protocol >= 4 and (identity.client_id, identity.mode) not in KEEPS_SCOPES:
            return replace(identity, scopes=frozenset(), scope_names=())
        return identity

    async def _device(
        self,
        nonce: str,
        params: ConnectParams,
        device: DeviceProof,
        arrival: Arrival,
        place: Place,
        identity: Identity,
        verdict: Verdict,
    ) -> Identity:
        self._check_proof(nonce, params, device, place, identity.protocol)
        await self._devices.load()
        limit = None
        if not verdict.ok:
            limit = self._by_device_token(params, device, place, identity, verdict)
            identity = replace(identity, method="device-token")
        names = [name for name in params.scopes if name in {s.value for s in identity.scopes}]
        if limit is not None:
            names = [name for name in names if not beyond([name], limit)]
        if self._devices.knows(device.id):
            names = await self._of_what_was_granted(params, device, place, names)
        else:
            await self._new_device(params, device, arrival, place, names)
        identity = replace(
            identity, device_id=device.id, scopes=granted(tuple(names)), scope_names=tuple(names)
        )
        if self._devices.revoked(device.id):
            return identity
        token, made = await self._devices.token(device.id, names)
        return replace(identity, device_token=token, token_issued_ms=made)

    def _check_proof(
        self, nonce: str, params: ConnectParams, device: DeviceProof, place: Place, protocol: int
    ) -> None:
        if wait := self.locked_ms("device-proof", place):
            raise _too_many(wait)
        reason = proof.fault(params, device, nonce, self._clock.now_ms())
        if reason:
            self.failed("device-proof", place)
            details = {"code": device_code(reason, protocol), "reason": reason}
            raise Refusal(Close.UNAUTHORIZED, proof.MESSAGES[reason], details)

    def _by_device_token(
        self,
        params: ConnectParams,
        device: DeviceProof,
        place: Place,
        identity: Identity,
        verdict: Verdict,
    ) -> tuple[str, ...]:
        """What the device's own token is good for. Raises Refusal when it has none."""
        auth = params.auth or ConnectAuth()
        # Clients of protocol 3 send the token they remember where the shared one would stand.
        offered = auth.device_token or auth.token or ""
        if offered and (wait := self.locked_ms("device-token", place)):
            raise _too_many(wait)
        scopes = self._devices.token_scopes(device.id, offered)
        if scopes is not None:
            self._limiter.succeeded("device-token", place.ip)
            return scopes
        if auth.device_token:
            self.failed("device-token", place)
            if not auth.token and not auth.password:
                verdict = Verdict(False, reason="device_token_mismatch")
        raise self._unauthorized(verdict, identity, place, with_device=True)

    async def _of_what_was_granted(
        self, params: ConnectParams, device: DeviceProof, place: Place, names: list[str]
    ) -> list[str]:
        stored = self._devices.scopes(device.id)
        lacking = beyond(names, stored)
        if not lacking:
            return names
        request = await self._devices.ask(_claim(params, device, place, lacking), "scope-upgrade")
        self._told_of_pairing(params, place, "asks for more rights", lacking)
        names = [name for name in names if name not in lacking]
        if not names:
            raise _pairing_required(request, "scope-upgrade")
        return names

    async def _new_device(
        self,
        params: ConnectParams,
        device: DeviceProof,
        arrival: Arrival,
        place: Place,
        names: list[str],
    ) -> None:
        """Pair a program of this host silently, anything else has to be approved."""
        claim = _claim(params, device, place, names)
        page = arrival.origin is not None and params.client.id not in WEB_CLIENTS
        if place.local and not page:
            await self._devices.pair(claim)
            log.info("device paired silently id=%s client=%s", device.id, params.client.id)
            return
        if wait := self.locked_ms("pairing", place):
            raise _too_many(wait)
        self.failed("pairing", place)  # asking counts: a stranger must not fill the list
        request = await self._devices.ask(claim, "not-paired")
        self._told_of_pairing(params, place, "asks to be paired", names)
        raise _pairing_required(request, "not-paired")

    def _told_of_pairing(
        self, params: ConnectParams, place: Place, what: str, scopes: list[str]
    ) -> None:
        name = params.client.display_name or params.client.id
        self._warn(
            f"pairing-{params.device.id[:12] if params.device else name}",
            f"{name} at {place.ip} {what}: {', '.join(scopes) or 'no scopes'}.",
            "Decide with device.pair.list, device.pair.approve and device.pair.reject.",
        )

    def _unauthorized(
        self, verdict: Verdict, identity: Identity, place: Place, *, with_device: bool
    ) -> Refusal:
        reason = verdict.reason
        if reason == "rate_limited":
            return _too_many(self.locked_ms("shared-secret", place))
        if verdict.tried:
            self.failed("shared-secret", place)
        details: dict[str, object] = {
            "code": REASON_CODES.get(reason, "AUTH_UNAUTHORIZED"), "authReason": reason,
        }  # fmt: skip
        if identity.protocol >= 4:
            again = with_device and reason == "token_mismatch"
            step = "retry_with_device_token" if again else "update_auth_credentials"
            if reason.endswith("_missing"):
                step = "update_auth_configuration"
            details |= {"canRetryWithDeviceToken": again, "recommendedNextStep": step}
        return Refusal(Close.UNAUTHORIZED, f"unauthorized: {_said(reason, identity)}", details)


def _said(reason: str, identity: Identity) -> str:
    hint = token_hint(identity.protocol)
    match reason:
        case "token_missing":
            return f"gateway token missing {hint}"
        case "token_mismatch":
            return f"gateway token mismatch {hint}"
        case "token_missing_config":
            return "the gateway has no token (set gateway.auth.token)"
        case "password_missing":
            return "gateway password missing (gateway.auth.password is asked for)"
        case "password_mismatch":
            return "gateway password mismatch (gateway.auth.password is asked for)"
        case "password_missing_config":
            return "the gateway has no password (set gateway.auth.password)"
        case "device_token_mismatch":
            return "device token mismatch (connect with the gateway's secret for a new one)"
        case "none_not_local":
            return "without authentication only programs of this host may connect"
        case _:
            return "the trusted proxy names no user that is allowed"


def _claim(params: ConnectParams, device: DeviceProof, place: Place, scopes: list[str]) -> Claim:
    client = params.client
    return Claim(
        device.id, device.public_key, tuple(scopes), client.id, client.mode,
        client.display_name or "", client.platform, client.device_family or "",
        "" if place.local else place.ip,
    )  # fmt: skip


def _pairing_required(request_id: str, reason: str) -> Refusal:
    details = {"code": "PAIRING_REQUIRED", "requestId": request_id, "reason": reason}
    return Refusal(Close.UNAUTHORIZED, "pairing required", details, code="NOT_PAIRED")


def _too_many(wait_ms: int) -> Refusal:
    return Refusal(
        Close.UNAUTHORIZED,
        "unauthorized: too many failed attempts (try again later)",
        {"code": "AUTH_RATE_LIMITED", "authReason": "rate_limited"},
        retry_after_ms=max(1, wait_ms),
    )
