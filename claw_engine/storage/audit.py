"""Audits the files of the state directory: who else may read or write them. Looks only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from claw_engine.audit import Finding, Mode, Severity, Subject

SYNCED = (
    "Dropbox", "OneDrive", "Google Drive", "GoogleDrive", "iCloud", "Nextcloud", "ownCloud",
    "Syncthing", "Sync", "pCloud Drive", "CloudStation", "SynologyDrive", "Seafile",
)  # fmt: skip
"""Folder names of programs that copy what they hold to other machines."""

_MANY = 2000


def check(subject: Subject) -> Iterator[Finding]:
    root = subject.state.root
    yield from _state_dir(root)
    yield from _config(subject)
    yield from _credentials(root)
    yield from _sessions(subject)
    yield from _logs(subject)
    yield from _ours(subject)
    yield from _above(root)
    names = set(Path(os.path.realpath(root)).parts)
    for name in SYNCED:
        if name in names:
            yield Finding(
                "fs.synced_dir", Severity.WARN, "The state directory is in a synced folder.",
                f"{root} lies in {name}: secrets and transcripts are copied to other machines.",
                "Move it (--state-dir) to a folder that stays here.",
            )  # fmt: skip


def _state_dir(root: Path) -> Iterator[Finding]:
    if root.is_symlink():
        yield Finding(
            "fs.state_dir.symlink", Severity.WARN, "The state directory is a symbolic link.",
            f"{root} leads to {os.path.realpath(root)}: whoever can change the link chooses "
            "where secrets go.",
            "Name the real directory with --state-dir.",
        )  # fmt: skip
    mode = _mode(root)
    if mode is None:
        return
    mend = (Mode(str(root), 0o700),)
    for bit, name, severity in (
        (0o002, "world_writable", Severity.CRITICAL),
        (0o020, "group_writable", Severity.WARN),
    ):
        if mode & bit:
            who = "anyone" if bit == 0o002 else "the group"
            yield Finding(
                f"fs.state_dir.perms_{name}", severity,
                f"The state directory can be written by {who}.",
                f"{root} has mode {mode:o}.", f"chmod 700 {root}", mend,
            )  # fmt: skip
            return
    if mode & 0o055:
        yield Finding(
            "fs.state_dir.perms_readable", Severity.WARN,
            "The state directory can be read by others.", f"{root} has mode {mode:o}.",
            f"chmod 700 {root}", mend,
        )  # fmt: skip


def _config(subject: Subject) -> Iterator[Finding]:
    for number, path in enumerate(subject.files):
        if not path.exists() or path.name == ".env":
            continue
        kind = "config" if number == 0 else "config_include"
        if kind == "config" and path.is_symlink():
            yield Finding(
                "fs.config.symlink", Severity.WARN, "The configuration is a symbolic link.",
                f"{path} leads to {os.path.realpath(path)}.", "Put the file itself there.",
            )  # fmt: skip
        yield from _secret(
            path, f"fs.{kind}", "The configuration", readable="perms_world_readable",
            group="perms_group_readable", writable="perms_writable", loud=True,
        )  # fmt: skip


def _credentials(root: Path) -> Iterator[Finding]:
    folder = root / "credentials"
    yield from _private_dir(folder, "fs.credentials_dir", "The credentials folder")
    profiles = _some(root.glob("agents/*/agent/auth-profiles.json"))
    for path in (*profiles, root / ".env", root / "exec-approvals.json", root / "door.key"):
        name = "fs.auth_profiles" if path.name.startswith("auth-") else "claw.fs.secret_file"
        yield from _secret(
            path, name, path.name, readable="perms_readable", group="perms_readable",
            writable="perms_writable", loud=True,
        )  # fmt: skip


def _sessions(subject: Subject) -> Iterator[Finding]:
    root = subject.state.root
    found = [*_some(root.glob("agents/*/sessions/sessions.json")),
             *_some(root.glob("agents/*/sessions/*.jsonl"))]  # fmt: skip
    loose = [path for path in found if (_mode(path) or 0) & 0o077]
    if loose:
        yield Finding(
            "fs.sessions_store.perms_readable", Severity.WARN,
            "Transcripts can be read by others.",
            f"{loose[0]}{f' and {len(loose) - 1} more' if len(loose) > 1 else ''}.",
            "chmod 600 on each of them", tuple(Mode(str(path), 0o600) for path in loose),
        )  # fmt: skip


def _logs(subject: Subject) -> Iterator[Finding]:
    named = subject.settings.logging.file
    paths = [Path(named).expanduser()] if named else []
    paths += _some(subject.state.logs_dir.glob("*.log"))
    loose = [path for path in paths if (_mode(path) or 0) & 0o077]
    if loose:
        yield Finding(
            "fs.log_file.perms_readable", Severity.WARN, "Log files can be read by others.",
            f"{loose[0]}{f' and {len(loose) - 1} more' if len(loose) > 1 else ''}.",
            "chmod 600 on each of them", tuple(Mode(str(path), 0o600) for path in loose),
        )  # fmt: skip


def _ours(subject: Subject) -> Iterator[Finding]:
    state = subject.state
    for folder in (state.inbox_dir, state.approvals_dir, state.agents_dir, state.logs_dir,
                   state.trace_db.parent):  # fmt: skip
        yield from _private_dir(folder, "claw.fs.private_dir", folder.name)
    for path in (state.door_key, state.exec_approvals, state.config, state.agents_dir,
                 state.inbox_dir, state.approvals_dir, state.trace_db.parent):  # fmt: skip
        if path.is_symlink() and path != state.config:
            yield Finding(
                "claw.fs.symlinked_state", Severity.WARN, f"{path.name} is a symbolic link.",
                f"{path} leads to {os.path.realpath(path)}, which is not kept from commands as "
                "the state directory is.",
                "Put the file or folder itself there.",
            )  # fmt: skip


def _above(root: Path) -> Iterator[Finding]:
    """A directory above that others may write: they could put another one in its place."""
    for folder in Path(os.path.realpath(root)).parents:
        found = _stat(folder)
        if found is None:
            continue
        loose = found.st_mode & 0o002 and not found.st_mode & stat.S_ISVTX
        if loose or found.st_uid not in (0, os.geteuid()):
            why = "anyone can write it" if loose else f"it belongs to user {found.st_uid}"
            yield Finding(
                "claw.fs.above_state_dir", Severity.CRITICAL,
                "Others can put another state directory in place of this one.",
                f"{folder}: {why}.", "Move the state directory, or take that right away.",
            )  # fmt: skip


def _private_dir(folder: Path, name: str, title: str) -> Iterator[Finding]:
    mode = _mode(folder)
    if mode is None or not mode & 0o077:
        return
    writable = bool(mode & 0o022)
    yield Finding(
        f"{name}.perms_{'writable' if writable else 'readable'}",
        Severity.CRITICAL if writable else Severity.WARN,
        f"{title} can be {'written' if writable else 'read'} by others.",
        f"{folder} has mode {mode:o}.", f"chmod 700 {folder}", (Mode(str(folder), 0o700),),
    )  # fmt: skip


def _secret(
    path: Path, name: str, title: str, *, readable: str, group: str, writable: str, loud: bool
) -> Iterator[Finding]:
    mode = _mode(path)
    if mode is None or not mode & 0o077:
        return
    if mode & 0o022:
        end, severity, verb = writable, Severity.CRITICAL, "written"
    elif mode & 0o004 and loud:
        end, severity, verb = readable, Severity.CRITICAL, "read"
    else:
        end, severity, verb = group, Severity.WARN, "read"
    if end == "perms_readable":
        severity = Severity.WARN
    yield Finding(
        f"{name}.{end}", severity, f"{title} can be {verb} by others.",
        f"{path} has mode {mode:o}.", f"chmod 600 {path}", (Mode(str(path), 0o600),),
    )  # fmt: skip


def _mode(path: Path) -> int | None:
    found = _stat(path)
    return stat.S_IMODE(found.st_mode) if found is not None else None


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _some(paths: Iterator[Path]) -> list[Path]:
    found = []
    for path in paths:
        found.append(path)
        if len(found) >= _MANY:
            break
    return found
