"""The shared secret, its sources, and how often one may be wrong about it."""

from __future__ import annotations

import pytest

from claw_engine.config.sections.gateway import GatewayAuth, RateLimit
from claw_engine.gateway.auth.limiter import MAX_KEYS, FailureLimiter
from claw_engine.gateway.auth.secrets import Secrets, Verdict, check, resolve
from tests.support.fakes import FakeClock


@pytest.mark.parametrize(
    ("auth", "env", "mode", "secret"),
    [
        (GatewayAuth(), {}, "token", ""),
        (GatewayAuth(token="t"), {}, "token", "t"),
        (GatewayAuth(password="p"), {}, "password", "p"),
        (GatewayAuth(token="t"), {"OPENCLAW_GATEWAY_TOKEN": " e "}, "token", "e"),
        (GatewayAuth(), {"CLAWDBOT_GATEWAY_TOKEN": "old"}, "token", "old"),
        (GatewayAuth(), {"OPENCLAW_GATEWAY_PASSWORD": "p"}, "password", "p"),
        (GatewayAuth(mode="password", token="t", password="p"), {}, "password", "p"),
        (GatewayAuth(mode="none"), {}, "none", ""),
    ],
)
def test_sources(auth: GatewayAuth, env: dict[str, str], mode: str, secret: str) -> None:
    found = resolve(auth, env)
    assert found.mode == mode
    assert (found.token if mode == "token" else found.password) == secret
    assert "secret" not in repr(Secrets("token", "secret", "secret"))


T, P = Secrets("token", "s"), Secrets("password", "", "s")


@pytest.mark.parametrize(
    ("secrets", "token", "password", "verdict"),
    [
        (T, "s", None, Verdict(True, "token")),
        (T, None, "s", Verdict(True, "token")),  # web pages send it in both fields
        (T, "x", None, Verdict(False, reason="token_mismatch", tried=True)),
        (T, None, None, Verdict(False, reason="token_missing")),
        (T, "", "", Verdict(False, reason="token_missing")),
        (T, None, "x", Verdict(False, reason="token_missing", tried=True)),
        (P, None, "s", Verdict(True, "password")),
        (P, "x", "y", Verdict(False, reason="password_mismatch", tried=True)),
        (Secrets("token"), "", None, Verdict(False, reason="token_missing_config")),
        (Secrets("token"), "x", None, Verdict(False, reason="token_missing_config")),
        (Secrets("none"), None, None, Verdict(False, reason="none_not_local")),
        (Secrets("trusted-proxy"), "s", None, Verdict(False, reason="proxy_user_missing")),
    ],
)
def test_verdicts(
    secrets: Secrets, token: str | None, password: str | None, verdict: Verdict
) -> None:
    assert check(secrets, token, password) == verdict


def test_without_authentication_only_this_host_comes_in() -> None:
    assert check(Secrets("none"), None, None, local=True).ok


LIMITS = RateLimit(max_attempts=3, window_ms=60_000, lockout_ms=300_000)


async def test_three_wrong_ones_in_a_minute_lock_for_five_also_on_loopback() -> None:
    clock = FakeClock()
    limiter = FailureLimiter(clock)
    for _ in range(3):
        assert limiter.locked_ms("shared-secret", "127.0.0.1", LIMITS) == 0
        limiter.failed("shared-secret", "127.0.0.1", LIMITS)
    assert limiter.locked_ms("shared-secret", "127.0.0.1", LIMITS) == 300_000
    assert limiter.locked_ms("device-token", "127.0.0.1", LIMITS) == 0
    assert limiter.locked_ms("shared-secret", "192.0.2.1", LIMITS) == 0
    await clock.advance(300)
    assert limiter.locked_ms("shared-secret", "127.0.0.1", LIMITS) == 0


async def test_old_failures_do_not_count_and_success_clears() -> None:
    clock = FakeClock()
    limiter = FailureLimiter(clock)
    for _ in range(5):
        limiter.failed("device-proof", "a", LIMITS)
        await clock.advance(31)
    assert limiter.locked_ms("device-proof", "a", LIMITS) == 0
    for _ in range(5):
        limiter.failed("device-proof", "b", LIMITS)
        limiter.failed("device-proof", "b", LIMITS)
        limiter.succeeded("device-proof", "b")
    assert limiter.locked_ms("device-proof", "b", LIMITS) == 0


async def test_loopback_is_exempt_only_when_asked_for() -> None:
    limits = RateLimit(max_attempts=1, exempt_loopback=True)
    limiter = FailureLimiter(FakeClock())
    for ip in ("127.0.0.1", "::1", "192.0.2.1"):
        limiter.failed("shared-secret", ip, limits)
    assert limiter.locked_ms("shared-secret", "::1", limits) == 0
    assert limiter.locked_ms("shared-secret", "192.0.2.1", limits) > 0


async def test_many_addresses_do_not_fill_memory() -> None:
    limiter = FailureLimiter(FakeClock())
    for number in range(MAX_KEYS + 50):
        limiter.failed("shared-secret", str(number), LIMITS)
    assert len(limiter._records) == MAX_KEYS
