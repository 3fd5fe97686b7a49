"""`claw security audit`: each room adds its checks here, nobody else knows them.

A check reads the settings and the files it is given and says what it found; it changes nothing.
What can be mended without a decision is a value beside the finding. Ids: OpenClaw 2026.2.26
(gateway digest §6.6); ours begin with `claw.`.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from claw_engine.paths import StateDir

if TYPE_CHECKING:
    from claw_engine.config.settings import Settings

log = logging.getLogger("claw.engine")


class Severity(StrEnum):
    CRITICAL = "critical"
    WARN = "warn"
    INFO = "info"


class Mode(Struct, frozen=True):
    """Mends a file by its mode; only bits are taken away."""

    path: str
    mode: int

    @property
    def words(self) -> str:
        return f"chmod {self.mode:o} {self.path}"


class Value(Struct, frozen=True):
    """Mends a setting by a safer value."""

    path: tuple[str, ...]
    value: str

    @property
    def words(self) -> str:
        return f"{'.'.join(self.path)} = {self.value}"


Mend: TypeAlias = Mode | Value


class Finding(Struct, frozen=True):
    check: str
    severity: Severity
    title: str
    detail: str
    remediation: str = ""
    mends: tuple[Mend, ...] = ()


class Subject(Struct, frozen=True):
    """What is looked at. `files` are those that the configuration was read from, main one first.

    `routes` are ways around the approvals that are open now, in words.
    """

    state: StateDir
    settings: Settings
    files: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    routes: tuple[str, ...] = ()

    def value(self, *path: str) -> object:
        """A value of the configuration as written, references resolved; None = not there."""
        found: object = self.settings.resolved
        for step in path:
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


Check: TypeAlias = Callable[[Subject], Iterable[Finding]]


class Audit:
    """Rooms add their checks at wiring; `run` asks them all. Blocking."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add(self, room: str, check: Check) -> None:
        """Raises ValueError when the room has one already."""
        if room in self._checks:
            raise ValueError(f"two audits of {room}")
        self._checks[room] = check

    def run(self, subject: Subject) -> list[Finding]:
        """What every room found, the worst first; one that fails keeps nobody else from looking."""
        found: list[Finding] = []
        for room, check in self._checks.items():
            try:
                found += check(subject)
            except Exception as error:
                log.exception("audit of %s failed", room)
                text = f"The check itself failed: {error}."
                found.append(Finding(f"claw.audit.{room}_failed", Severity.WARN, text, text))
        return sorted(found, key=lambda one: (list(Severity).index(one.severity), one.check))


def to_wire(findings: Sequence[Finding], now_ms: int) -> dict[str, object]:
    """The report (gateway digest §6.6)."""
    counts = {severity.value: 0 for severity in Severity}
    for one in findings:
        counts[one.severity.value] += 1
    return {"ts": now_ms, "summary": counts, "findings": [_row(one) for one in findings]}


def _row(one: Finding) -> dict[str, object]:
    row: dict[str, object] = {
        "checkId": one.check,
        "severity": one.severity.value,
        "title": one.title,
        "detail": one.detail,
    }
    if one.remediation:
        row["remediation"] = one.remediation
    if one.mends:
        row["mends"] = [mend.words for mend in one.mends]
    return row


def mend_modes(findings: Iterable[Finding]) -> list[str]:
    """Take away what others may do with the files found; words for each that was mended.

    Blocking. Never follows a link; a file that cannot be changed is said with the reason.
    """
    done = []
    for mend in dict.fromkeys(mend for one in findings for mend in one.mends):
        if not isinstance(mend, Mode):
            continue
        try:
            fd = os.open(mend.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                now = stat.S_IMODE(os.fstat(fd).st_mode)
                os.fchmod(fd, now & mend.mode)
            finally:
                os.close(fd)
            done.append(mend.words)
        except OSError as error:
            done.append(f"NOT DONE: {mend.words}: {error.strerror}")
    return done
