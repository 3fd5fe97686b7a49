"""Audits who may do what: elevated senders, exec hosts without a sandbox, profiles overridden."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from claw_engine.audit import Finding, Severity, Subject
from claw_engine.tools.elevated import level
from claw_engine.tools.standing import settings_of

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

LARGE = 25
"""Senders of one provider above which an allow list is long (OpenClaw 2026.2.26)."""


def check(subject: Subject) -> Iterator[Finding]:
    settings = subject.settings
    for provider, senders in settings.tools.elevated.allow_from.items():
        name = f"tools.elevated.allowFrom.{provider}"
        if "*" in senders:
            yield Finding(
                f"{name}.wildcard", Severity.CRITICAL,
                f"Everyone on {provider} may have commands run outside the sandbox.",
                f"{name} has *.", "List the senders.",
            )  # fmt: skip
        elif len(senders) > LARGE:
            yield Finding(
                f"{name}.large", Severity.WARN,
                f"{len(senders)} senders of {provider} are elevated.",
                f"{name} is long.", "List only who needs it.",
            )  # fmt: skip
    if settings.tools.exec.host == "sandbox":
        if settings.agents.defaults.sandbox.mode == "off":
            yield Finding(
                "tools.exec.host_sandbox_no_sandbox_defaults", Severity.WARN,
                "Commands are bound to a sandbox that is switched off.",
                "tools.exec.host is sandbox, agents.defaults.sandbox.mode is off: nothing runs.",
                "Switch the sandbox on, or set tools.exec.host to gateway.",
            )  # fmt: skip
        off = [
            entry.id for entry in settings.agents.list
            if entry.sandbox is not None and settings_of(settings, entry.id).mode == "off"
        ]  # fmt: skip
        if off:
            yield Finding(
                "tools.exec.host_sandbox_no_sandbox_agents", Severity.WARN,
                "Agents are bound to a sandbox that is switched off for them.",
                f"tools.exec.host is sandbox; agents {', '.join(off)} have none.",
                "Switch their sandbox on.",
            )  # fmt: skip
    if settings.tools.profile == "minimal":
        wider = [
            entry.id for entry in settings.agents.list
            if entry.tools.profile not in (None, "minimal")
        ]  # fmt: skip
        if wider:
            yield Finding(
                "tools.profile_minimal_overridden", Severity.WARN,
                "Agents have more tools than the profile minimal.",
                f"agents {', '.join(wider)} name a profile of their own.", "Take it out.",
            )  # fmt: skip
    yield _surface(subject)


def _elevated(settings: Settings) -> str:
    """What holds until somebody says otherwise, and who may: as `claw sandbox explain` tells it."""
    chosen = settings.agents.defaults.elevated_default
    elevated = settings.tools.elevated
    if not elevated.enabled:
        return "off, for everyone"
    word = level(elevated, chosen=chosen, source="console", extra={})
    others = sorted(name for name, senders in elevated.allow_from.items() if senders)
    return f"{word} unless changed by {' or '.join(['the operator', *others])}"


def _surface(subject: Subject) -> Finding:
    settings = subject.settings
    boxed = sum(
        settings_of(settings, agent).mode != "off"
        for agent in dict.fromkeys(("main", *(entry.id for entry in settings.agents.list)))
    )
    channels = subject.value("channels")
    named = sorted(channels) if isinstance(channels, dict) else []
    parts = (
        f"port bound to {settings.gateway.bind}",
        f"channels {', '.join(named) or 'none'}",
        f"elevated {_elevated(settings)}",
        f"agents with a sandbox {boxed}",
    )
    return Finding(
        "summary.attack_surface", Severity.INFO, "What can be reached.", "; ".join(parts) + "."
    )
