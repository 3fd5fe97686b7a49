"""Audits what stands in the configuration file: secrets written out, dangerous switches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from claw_engine.audit import Finding, Severity, Subject, Value

_DANGEROUS = ("dangerously", "allowInsecure", "insecure")
"""Beginnings of names that say of themselves that they open something."""


def check(subject: Subject) -> Iterator[Finding]:
    flags = sorted(_flags(subject.settings.raw, ""))
    if flags:
        yield Finding(
            "config.insecure_or_dangerous_flags", Severity.WARN,
            "Switches that call themselves dangerous are on.", f"{', '.join(flags)}.",
            "Take out what is not needed.",
        )  # fmt: skip
    raw = subject.settings.raw
    if _plain(raw, "gateway", "auth", "password"):
        yield Finding(
            "config.secrets.gateway_password_in_config", Severity.WARN,
            "The gateway's password is written out in the configuration.",
            "gateway.auth.password holds it as plain text; backups and copies hold it too.",
            "Write ${NAME} there and put the value into the environment or .env.",
        )  # fmt: skip
    if _plain(raw, "hooks", "token"):
        yield Finding(
            "config.secrets.hooks_token_in_config", Severity.INFO,
            "The token of the webhooks is written out in the configuration.",
            "hooks.token holds it as plain text.", "Write ${NAME} there.",
        )  # fmt: skip
    if subject.settings.logging.redact_sensitive == "off":
        yield Finding(
            "logging.redact_off", Severity.WARN, "Secrets are not hidden in logs and summaries.",
            "logging.redactSensitive is off.", "Set it to tools.",
            (Value(("logging", "redactSensitive"), "tools"),),
        )  # fmt: skip


def _flags(value: object, place: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            name = f"{place}.{key}" if place else str(key)
            if inner is True and str(key).startswith(_DANGEROUS):
                yield name
            yield from _flags(inner, name)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _flags(inner, f"{place}[{number}]")


def _plain(raw: Mapping[str, object], *path: str) -> bool:
    """Whether a text stands there that is no reference to a variable."""
    found: object = raw
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return isinstance(found, str) and bool(found) and "${" not in found
