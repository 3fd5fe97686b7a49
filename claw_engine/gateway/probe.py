"""What `claw doctor` finds out about the gateway: can it be reached, by whom."""

from __future__ import annotations

from collections.abc import Sequence

from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.gateway.gateway import Gateway
from claw_engine.probes import Found, Health

SHORT = 24
"""Characters; a shorter secret is a weak one (gateway digest §6.6)."""


async def look(gateway: Gateway, settings: GatewaySettings, waits: str) -> Sequence[Found]:
    """`waits` names settings that are not in force yet, empty when all are."""
    found = [_port(gateway, settings), _secret(gateway)]
    if waits:
        hint = "claw gateway restart"
        found.append(Found("settings", Health.WARN, f"Not in force yet: {waits}.", hint))
    try:
        await gateway.devices.load()
    except Exception as error:  # whatever it is, it is the finding
        return [*found, Found("devices", Health.FAIL, f"The devices cannot be read: {error}.")]
    asking = len(gateway.devices.pending())
    text = f"{len(gateway.devices.paired())} paired, {asking} asking."
    hint = "claw devices" if asking else ""
    return [*found, Found("devices", Health.WARN if asking else Health.OK, text, hint)]


def _port(gateway: Gateway, settings: GatewaySettings) -> Found:
    number = gateway.port.number
    if number is None:
        return Found("port", Health.WARN, "No port is open: only this host's door answers.",
                     "claw gateway run opens one; `claw logs` says why there is none.")  # fmt: skip
    tls = "with TLS" if settings.tls.enabled else "without TLS"
    text = f"Port {number} is open on {settings.bind}, {tls}, for {gateway.port.sessions} clients."
    if settings.bind != "loopback" and not settings.tls.enabled:
        return Found("port", Health.WARN, text, "Set gateway.tls.enabled, or bind to loopback.")
    return Found("port", Health.OK, text)


def _secret(gateway: Gateway) -> Found:
    secrets = gateway.port.secrets
    if secrets.mode == "none":
        return Found("secret", Health.WARN, "Programs of this host need no secret.",
                     "Set gateway.auth.mode to token.")  # fmt: skip
    shared = secrets.token if secrets.mode == "token" else secrets.password
    if shared and len(shared) < SHORT:
        return Found("secret", Health.WARN, f"The {secrets.mode} has {len(shared)} characters.",
                     f"Use {SHORT} or more.")  # fmt: skip
    return Found("secret", Health.OK, f"Clients prove themselves by {secrets.mode}.")
