"""exec-approvals.json on disk: the operator's rules and how strict they want it.

One owner a process. Reads are cached by the file's identity, so an edit by hand or by OpenClaw
counts at the next decision; writes re-read first, replace atomically (0600) and keep what they do
not know. It judges no command. A file that cannot be read as rules allows nothing and is moved
aside, not overwritten, when something must be written.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.approvals import rulefile
from claw_engine.approvals.errors import RulesError
from claw_engine.approvals.evaluate import RuleUse
from claw_engine.approvals.fsview import FsView, RealFs
from claw_engine.approvals.policy import ExecPolicy, Rule
from claw_engine.approvals.rulefile import RuleFile
from claw_engine.storage.text import to_pretty
from claw_engine.world import World

log = logging.getLogger(__name__)

_Identity = tuple[int, int, int, int] | None


class _Seen(Struct, frozen=True):
    """The file as read: `pins` are hashes (by rule id) seen first and not written yet."""

    identity: _Identity
    file: RuleFile
    pins: Mapping[str, str]

    def rules(self) -> tuple[Rule, ...]:
        return tuple(self.pinned(rule) for rule in rulefile.rules(self.file))

    def pinned(self, rule: Rule) -> Rule:
        digest = self.pins.get(rule.id)
        return replace(rule, content_hash=digest) if digest and not rule.content_hash else rule


class ExecApprovals:
    """The rules file. `warn` gets one sentence when the file is damaged (default: the log); after
    `load` it is always called on that loop, whichever thread reads the file."""

    def __init__(
        self,
        world: World,
        path: Path,
        *,
        fs: FsView | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.path = path
        self.fs = fs or RealFs()
        self._world = world
        self._warn = warn or log.warning
        self._loop: asyncio.AbstractEventLoop | None = None
        # One value, swapped whole: the loop reads it while the disk thread writes the file.
        self._seen: _Seen | None = None

    async def load(self) -> None:
        """Read the file and bind hand-made rules for writable files to their present content."""
        self._loop = asyncio.get_running_loop()
        await self._world.disk.run(self._load)

    def policy_for(self, agent_id: str, caller: ExecPolicy | None = None) -> ExecPolicy:
        """The policy of an agent; what the file leaves open comes from `caller`.

        Costs one `stat` unless the file changed. Never raises: unreadable rules allow nothing.
        """
        seen = self._refresh()
        policy = rulefile.policy(seen.file, agent_id, caller or ExecPolicy())
        return replace(policy, rules=tuple(map(seen.pinned, policy.rules)))

    def rules(self) -> tuple[Rule, ...]:
        """All rules of all agents, with their last use."""
        return self._refresh().rules()

    async def add_always(
        self,
        agent_id: str,
        patterns: tuple[str, ...],
        hashes: Mapping[str, str] | None = None,
        *,
        command: str | None = None,
        arguments: Mapping[str, tuple[str, str]] | None = None,
    ) -> tuple[Rule, ...]:
        """Store one rule a pattern, each by its real path; `hashes` binds paths to their content,
        `arguments` turns a pattern into a path and an argument pattern (see AlwaysOffer).

        A literal pattern of a file that the agent could write is bound even without a hash given.
        Raises RulesError when the file cannot be written.
        """
        wanted = tuple((arguments or {}).get(pattern, (pattern, None)) for pattern in patterns)
        return await self._world.disk.run(self._add, agent_id, wanted, hashes or {}, command)

    async def touch(self, uses: tuple[RuleUse, ...], command: str) -> None:
        """Note that rules allowed a command now: time, command and real path. Raises RulesError."""
        if uses:
            await self._world.disk.run(self._touch, uses, command)

    async def remove(self, rule_id: str) -> Rule | None:
        """Take a rule back; the rule, or None when there is none. Raises RulesError."""
        return await self._world.disk.run(self._remove, rule_id)

    # on the disk executor

    def _load(self) -> None:
        seen = self._refresh()
        if seen.pins:
            self._write(seen, seen.file)

    def _add(
        self,
        agent_id: str,
        wanted: tuple[tuple[str, str | None], ...],
        hashes: Mapping[str, str],
        command: str | None,
    ) -> tuple[Rule, ...]:
        seen = self._refresh()
        file, added = seen.file, []
        for pattern, arg_pattern in wanted:
            found = self.fs.file(pattern)
            real = found.real if found and "*" not in pattern and "?" not in pattern else pattern
            digest = hashes.get(real) or hashes.get(pattern)
            if digest is None and found is not None and self.fs.writable(found):
                digest = self.fs.sha256(found)
            rule = Rule(
                self._world.ids.uuid(),
                real,
                digest,
                self._world.clock.now_ms(),
                command,
                real if found else None,
                agent_id,
                arg_pattern,
            )
            file = rulefile.with_rule(file, rule)
            added.append(rule)
        stored = {_same(rule): rule for rule in self._write(seen, file).rules()}
        return tuple(stored[_same(rule)] for rule in added)

    def _touch(self, uses: tuple[RuleUse, ...], command: str) -> None:
        seen = self._refresh()
        file, now = seen.file, self._world.clock.now_ms()
        known = {rule.id: rule for rule in rulefile.rules(file)}
        for use in uses:
            rule = known.get(use.rule.id)
            if rule is not None:
                changed = replace(
                    rule, last_used_ms=now, last_command=command, last_resolved=use.resolved
                )
                file = rulefile.with_changed(file, changed)
        self._write(seen, file)

    def _remove(self, rule_id: str) -> Rule | None:
        seen = self._refresh()
        rule = next((r for r in seen.rules() if r.id == rule_id), None)
        if rule is not None:
            self._write(seen, rulefile.without_rule(seen.file, rule_id))
        return rule

    def _write(self, seen: _Seen, file: RuleFile) -> _Seen:
        for rule in rulefile.rules(file):
            if rule.id in seen.pins:
                file = rulefile.with_changed(file, seen.pinned(rule))
        disk, name = self._world.disk, self.path.name
        try:
            if seen.file.problem and disk.exists(self.path):
                aside = self.path.with_name(f"{name}.bad-{self._world.clock.now_ms()}")
                disk.rename(self.path, aside)
                self._tell(f"{name} {seen.file.problem}; it was kept as {aside.name}.")
            disk.mkdir(self.path.parent)
            disk.replace(self.path, to_pretty(file.data) + b"\n")
        except OSError as error:
            raise RulesError(
                f"The approval rules could not be written: {error.strerror or error}.",
                hint=f"Check free space and permissions of {self.path}.",
            ) from error
        self._seen = None
        return self._refresh()

    def _tell(self, sentence: str) -> None:
        if self._loop is None:
            self._warn(sentence)
            return
        try:
            self._loop.call_soon_threadsafe(self._warn, sentence)
        except RuntimeError:  # the loop is gone: the engine has stopped
            log.warning(sentence)

    def _refresh(self) -> _Seen:
        identity, seen = self._stat(), self._seen
        if seen is not None and identity == seen.identity:
            return seen
        file = self._read() if identity else rulefile.empty()
        if file.problem:
            self._tell(f"{self.path.name} {file.problem}: no rule of it counts.")
        seen = _Seen(identity, file, self._pins(file))
        self._seen = seen
        return seen

    def _pins(self, file: RuleFile) -> dict[str, str]:
        """Bind what a person wrote by hand to the content that is there when it is first seen."""
        pins: dict[str, str] = {}
        for rule in rulefile.rules(file):
            if rule.content_hash is not None or rule.is_glob or "/" not in rule.pattern:
                continue
            found = self.fs.file(rule.pattern)
            if found is None or found.real != rule.pattern or not self.fs.writable(found):
                continue
            digest = self.fs.sha256(found)
            if digest is not None:
                pins[rule.id] = digest
        return pins

    def _read(self) -> RuleFile:
        try:
            return rulefile.read(self._world.disk.read_bytes(self.path))
        except OSError as error:
            return replace(rulefile.empty(), problem=f"cannot be read ({error.strerror})")

    def _stat(self) -> _Identity:
        try:
            info: os.stat_result = self._world.disk.stat(self.path)
        except OSError:
            return None
        return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _same(rule: Rule) -> tuple[str, str, str | None]:
    """Two rules with this in common say the same."""
    return rule.agent_id, rule.pattern, rule.arg_pattern
