"""The Markdown files of a workspace that go into every prompt: seed, read, shorten.

Names, order, limits and the onboarding record are OpenClaw's (agent digest §2.4). Reading is
cached by file identity. Knows no session and no model; sync functions run on the disk executor.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from claw_engine.parts import Part, PartKind
from claw_engine.paths import contains
from claw_engine.world import Clock, Disk

EXPECTED = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md")
BOOTSTRAP = "BOOTSTRAP.md"
MEMORY = ("MEMORY.md", "memory.md")
OPTIONAL = frozenset({"USER.md", BOOTSTRAP, *MEMORY})
"""Files that leave no mark in the prompt when they do not exist."""

NARROW = frozenset({"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md"})
"""What subagent and cron sessions see."""

MAX_READ_BYTES = 2 * 1024 * 1024
HEAD_SHARE, TAIL_SHARE = 0.7, 0.2
MIN_BUDGET_CHARS = 64

_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's trimEnd takes off: the report counts characters as OpenClaw does."""

_Identity = tuple[int, int, int, int]
"""Device, inode, size and mtime (ns)."""


class WorkspaceFile(Struct, frozen=True):
    """A file as read; `text` None means it is expected but cannot be used."""

    name: str
    path: Path
    text: str | None


class Injected(Struct, frozen=True):
    """A file as it stands in the prompt; sizes in characters."""

    file: WorkspaceFile
    part: Part
    raw_chars: int
    injected_chars: int
    truncated: bool


class Workspace:
    """One agent's workspace folder. `load` gives the same tuple while no file changed."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self.root = root
        self._paths = tuple((name, root / name) for name in (*EXPECTED, BOOTSTRAP, *MEMORY))
        self._texts: dict[Path, tuple[_Identity, str]] = {}
        self._seen: list[_Identity | None] = []
        self._last: tuple[WorkspaceFile, ...] = ()

    def load(self) -> tuple[WorkspaceFile, ...]:
        """All files in prompt order (blocking; call it on the disk executor)."""
        identities = [self._identity(path) for _, path in self._paths]
        if identities == self._seen:
            return self._last
        found: list[WorkspaceFile] = []
        seen: set[tuple[int, int]] = set()
        unread = False
        for (name, path), identity in zip(self._paths, identities, strict=True):
            text = self._read(path, identity)
            unread = unread or (text is None and identity is not None)
            if text is None and name in OPTIONAL:
                continue
            if identity is None or identity[:2] not in seen:
                found.append(WorkspaceFile(name, path, text))
            if identity is not None:
                seen.add(identity[:2])
        files = tuple(found)
        if files != self._last:
            self._last = files
        self._seen = [] if unread else identities  # what could not be read is tried again
        return self._last

    def _read(self, path: Path, identity: _Identity | None) -> str | None:
        if identity is None:
            self._texts.pop(path, None)
            return None
        known = self._texts.get(path)
        if known is not None and known[0] == identity:
            return known[1]
        try:
            raw = self._disk.read_from(path, 0, MAX_READ_BYTES)
        except OSError:
            return None
        text = raw.decode("utf-8", "replace").rstrip(_SPACE)
        self._texts[path] = (identity, text)
        return text

    def _identity(self, path: Path) -> _Identity | None:
        """Identity of a regular file of this workspace; None for links that lead elsewhere."""
        try:
            facts = self._disk.lstat(path)
            if stat.S_ISLNK(facts.st_mode):
                if not contains(self.root, path):
                    return None
                facts = self._disk.stat(path)
        except OSError:
            return None
        # A second hard link may live outside the workspace, so it counts as an escape too.
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
            return None
        return (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)


def files_for(session_key: str, files: tuple[WorkspaceFile, ...]) -> tuple[WorkspaceFile, ...]:
    """The files a session may see: all of them, or the narrow set for subagents and cron."""
    rest = session_key.split(":")[2:3]
    if rest and rest[0] in ("subagent", "cron"):
        return tuple(file for file in files if file.name in NARROW)
    return files


def inject(files: Sequence[WorkspaceFile], per_file: int, total: int) -> tuple[Injected, ...]:
    """Shorten files to the limits (characters) and make parts of them. Pure."""
    out: list[Injected] = []
    remaining = total
    for file in files:
        if remaining < MIN_BUDGET_CHARS:
            break
        raw = file.text
        if raw is None:
            body = f"[MISSING] Expected at: {file.path}"[:remaining]
        else:
            body = shorten(file.name, raw, min(per_file, remaining), remaining)
        part = _part(file.name, str(file.path), body)
        raw_chars = len(raw) if raw is not None else 0
        out.append(Injected(file, part, raw_chars, len(body), raw is not None and body != raw))
        remaining -= len(body)
    return tuple(out)


@lru_cache(maxsize=64)
def _part(name: str, path: str, body: str) -> Part:
    """The same object for the same words: a change of one file leaves the others as they are."""
    return Part(f"file:{name}", PartKind.FILE, path, f"## {path}\n{body}", name)


def shorten(name: str, text: str, limit: int, clamp: int) -> str:
    """Head 70 % and tail 20 % of `limit` characters around a marker; never above `clamp`."""
    if len(text) > limit:
        head, tail = int(limit * HEAD_SHARE), int(limit * TAIL_SHARE)
        marker = (
            f"\n[... {name} is longer than this: read the file for the rest ...]\n"
            f"... (kept {head}+{tail} of {len(text)} characters) ...\n"
        )
        text = f"{text[:head]}\n{marker}\n{text[len(text) - tail :] if tail else ''}"
    return text if len(text) <= clamp else text[: max(0, clamp - 1)] + "…"


def template(name: str) -> str:
    """Our own text for a file of a new workspace."""
    from importlib import resources  # off the start path: loads tempfile and every compressor

    folder = resources.files("claw_engine.agent.prompt") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def seed(disk: Disk, clock: Clock, root: Path) -> list[str]:
    """Create the workspace and the files it lacks; never overwrites. Returns the names written.

    BOOTSTRAP.md is only for a workspace that nobody has used: nothing in it but our own words. Once
    gone it never comes back; `.openclaw/workspace-state.json` remembers. Blocking.
    """
    disk.mkdir(root)
    state_path = root / ".openclaw" / "workspace-state.json"
    state = _read_state(disk, state_path)
    before = dict(state)
    there = [name for name in EXPECTED if _present(root / name)]
    written = [name for name in EXPECTED if _write_missing(disk, root, name)]
    seeded, done = "bootstrapSeededAt" in state, "onboardingCompletedAt" in state
    now = _iso(clock.now_ms())
    if _present(root / BOOTSTRAP):
        state.setdefault("bootstrapSeededAt", now)
    elif seeded or done or _in_use(disk, root, there):
        state.setdefault("onboardingCompletedAt", now)
    else:
        _write_missing(disk, root, BOOTSTRAP)
        written.append(BOOTSTRAP)
        state["bootstrapSeededAt"] = now
    if state != before:
        disk.mkdir(state_path.parent)
        disk.replace(state_path, json.dumps(state, indent=2).encode())
    return written


def _in_use(disk: Disk, root: Path, names: Sequence[str]) -> bool:
    """Whether a workspace holds memory, history, or a file of `names` that is not our own text."""
    if any(_present(root / name) for name in (*MEMORY, "memory", ".git")):
        return True
    return any(_is_changed(disk, root / name) for name in names)


def _is_changed(disk: Disk, path: Path) -> bool:
    try:
        return disk.read_bytes(path) != template(path.name).encode()
    except OSError:
        return True


def _write_missing(disk: Disk, root: Path, name: str) -> bool:
    if _present(root / name):
        return False
    disk.replace(root / name, template(name).encode(), mode=0o644)
    return True


def _present(path: Path) -> bool:
    return os.path.lexists(path)


def _read_state(disk: Disk, path: Path) -> dict[str, object]:
    try:
        raw = json.loads(disk.read_bytes(path))
    except (OSError, ValueError):
        raw = None
    return dict(raw) if isinstance(raw, dict) else {"version": 1}


def _iso(ms: int) -> str:
    from datetime import UTC, datetime  # only when a workspace is seeded

    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")[:23] + "Z"
