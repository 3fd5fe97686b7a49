"""All rooms' security checks together, and what they look at when no engine runs."""

from __future__ import annotations

from collections.abc import Mapping

from claw_engine.approvals import audit as approvals
from claw_engine.audit import Audit, Subject, Value, mend_modes, to_wire
from claw_engine.config import audit as config
from claw_engine.config.edit import EditError, set_value
from claw_engine.config.load import config_path
from claw_engine.config.parse import read_plain
from claw_engine.config.read import ConfigReader
from claw_engine.config.spans import ScanError
from claw_engine.errors import ClawError
from claw_engine.gateway import audit as gateway
from claw_engine.paths import StateDir
from claw_engine.sandbox import audit as sandbox
from claw_engine.storage import audit as storage
from claw_engine.tools import audit as tools
from claw_engine.world import Disk


class NothingToAudit(ClawError):
    """The configuration cannot be read."""


def all_checks() -> Audit:
    """A room that comes later adds its own here."""
    audit = Audit()
    audit.add("files", storage.check)
    audit.add("config", config.check)
    audit.add("gateway", gateway.check)
    audit.add("approvals", approvals.check)
    audit.add("tools", tools.check)
    audit.add("sandbox", sandbox.check)
    return audit


def subject_of(
    state: StateDir, env: Mapping[str, str], disk: Disk, routes: tuple[str, ...] = ()
) -> Subject:
    """Read from the files. Blocking. Raises NothingToAudit when the configuration is broken."""
    path = config_path(state, env)
    reading = ConfigReader(path, dict(env), disk).read(1)
    if reading.settings is None:
        problem = next((one.sentence() for one in reading.problems if one.fatal), str(path))
        raise NothingToAudit(
            f"The configuration cannot be used: {problem}.",
            hint="Mend it; `claw config validate` lists all that is wrong.",
        )
    files = dict.fromkeys((path, *reading.files))
    return Subject(state, reading.settings, tuple(files), env, routes)


def report(subject: Subject, now_ms: int) -> dict[str, object]:
    """What `security.audit` answers. Blocking."""
    return to_wire(all_checks().run(subject), now_ms)


def fix(subject: Subject, disk: Disk) -> list[str]:
    """Mend what needs no decision: modes, and settings that have one safe value. Blocking.

    Words for each thing done, or not done and why. Secrets and exposure are left alone.
    """
    findings = all_checks().run(subject)
    done = mend_modes(findings)
    path = subject.files[0].resolve()
    for mend in (mend for one in findings for mend in one.mends):
        if not isinstance(mend, Value):
            continue
        try:
            text = read_plain(disk, path).decode()
            disk.replace(path, set_value(text, mend.path, mend.value).encode(), mode=0o600)
            done.append(f"{mend.words} in {path}")
        except (OSError, UnicodeDecodeError, EditError, ScanError) as error:
            done.append(f"NOT DONE: {mend.words} in {path}: {error}")
    return done
