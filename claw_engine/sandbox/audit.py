"""Audits sandboxes: container settings that undo them, and ways around the approvals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from claw_engine.audit import Finding, Severity, Subject
from claw_engine.config.sections.box import BoxSettings, merged
from claw_engine.sandbox.docker import dangers

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

_WARN = frozenset({"sandbox.bind_mount_non_absolute"})


def check(subject: Subject) -> Iterator[Finding]:
    state = str(subject.state.root)
    seen: set[tuple[str, str]] = set()
    for place, wanted in _all(subject.settings):
        if wanted.mode == "off" and wanted.docker.stated:
            key = ("sandbox.docker_config_mode_off", place)
            seen.add(key)
            yield Finding(
                key[0], Severity.WARN, "Containers are configured, but no session works in one.",
                f"{place}.docker is set, {place}.mode is off.", f"Set {place}.mode, or drop it.",
            )  # fmt: skip
        for danger in dangers(wanted.docker, state):
            if (danger.check, danger.text) in seen:
                continue
            seen.add((danger.check, danger.text))
            severity = Severity.WARN if danger.check in _WARN else Severity.CRITICAL
            yield Finding(
                danger.check, severity, "A container setting would undo the sandbox.",
                f"{place}: {danger.text}.", "Take it out; containers are not made with it.",
            )  # fmt: skip
    for route in subject.routes:
        yield Finding(
            "claw.approvals.bypass", Severity.CRITICAL,
            "Approvals can be bypassed by allowed commands.", f"{route}.",
            "See `claw doctor` for what closes it.",
        )  # fmt: skip


def _all(settings: Settings) -> Iterator[tuple[str, BoxSettings]]:
    defaults = settings.agents.defaults.sandbox
    yield "agents.defaults.sandbox", defaults
    for entry in settings.agents.list:
        if entry.sandbox is not None:
            yield f"agents.list[{entry.id}].sandbox", merged(defaults, entry.sandbox)
