"""One pass over the configuration files: text → settings, or what is wrong with it.

Reads through the disk it is given and changes nothing; the store decides what follows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from claw_engine.config.parse import (
    Document,
    JsonObject,
    Reader,
    SyntaxProblem,
    decode_text,
    parse,
    read_plain,
    take_out_non_finite,
)
from claw_engine.config.problems import KeyPath, Problem, ProblemKind, is_fatal
from claw_engine.config.sections.agents import AgentsSettings
from claw_engine.config.sections.approvals import ApprovalsSettings, ClawSettings
from claw_engine.config.sections.base import Section
from claw_engine.config.sections.bindings import BindingsSettings
from claw_engine.config.sections.commands import CommandsSettings
from claw_engine.config.sections.cron import CronSettings
from claw_engine.config.sections.gateway import GatewaySettings
from claw_engine.config.sections.logging import LoggingSettings
from claw_engine.config.sections.messages import MessagesSettings
from claw_engine.config.sections.models import ModelsSettings
from claw_engine.config.sections.session import SessionSettings
from claw_engine.config.sections.skills import SkillsSettings
from claw_engine.config.sections.tools import ToolsSettings
from claw_engine.config.settings import Sections, Settings, with_unusable
from claw_engine.config.variables import Finding, Substitution, apply_env_block, substitute

_POLICY = frozenset({"tools", "claw", "approvals"})
"""A key that goes missing here could allow more than was meant: the file is not used then."""

_PATH_KEYS = ("dir", "path", "paths", "file", "root", "workspace")


class Reading(Struct, frozen=True):
    """What one pass found; `settings` is None when the files cannot be used."""

    settings: Settings | None
    problems: tuple[Problem, ...]
    text: str
    present: bool
    files: tuple[Path, ...]
    keep: bytes = b""
    raw_hash: str = ""
    """SHA-256 (hex) of the main file as it is on disk, as OpenClaw's snapshot hash."""

    @property
    def fatal(self) -> Problem | None:
        return next((problem for problem in self.problems if problem.fatal), None)


SECTIONS: Mapping[str, type[Section]] = {
    "claw": ClawSettings,
    "gateway": GatewaySettings,
    "agents": AgentsSettings,
    "bindings": BindingsSettings,
    "models": ModelsSettings,
    "tools": ToolsSettings,
    "session": SessionSettings,
    "messages": MessagesSettings,
    "logging": LoggingSettings,
    "cron": CronSettings,
    "commands": CommandsSettings,
    "skills": SkillsSettings,
}
"""The top-level names that are read, and by what."""


class ConfigReader(Struct):
    """Reads `path` with `env` (the process environment plus `.env`) as surroundings."""

    path: Path
    env: Mapping[str, str]
    reader: Reader
    problems: list[Problem] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)

    def read(self, generation: int) -> Reading:
        """Never raises: what cannot be read is a fatal problem."""
        data, text, present = b"", "", True
        settings: Settings | None = None
        raw: JsonObject = {}
        try:
            data = read_plain(self.reader, self.path)
            text = decode_text(data, str(self.path))
            raw = self._expand(text)
        except FileNotFoundError:
            present = False
        except OSError as error:
            self._report_unreadable(error)
        except SyntaxProblem as error:
            self.problems.append(error.problem)
        if not any(problem.fatal for problem in self.problems):
            settings = self._settings(raw, generation)
        if any(problem.fatal for problem in self.problems):
            settings = None
        return Reading(
            settings,
            tuple(self.problems),
            text,
            present,
            self._files(),
            self._keep(text, raw),
            hashlib.sha256(data).hexdigest(),
        )

    def _expand(self, text: str) -> JsonObject:
        document = Document(str(self.path), text)
        value = parse(document)
        if "$include" not in text:
            self.documents.append(document)
            return value
        from claw_engine.config.include import Includer  # few files have parts

        includer = Includer(self.path.parent, self.reader, self.documents)
        return includer.expand(document, value)

    def _keep(self, text: str, raw: JsonObject) -> bytes:
        """What a last-known-good copy holds: the text, or the merged whole when it has parts."""
        if len(self.documents) > 1:
            return json.dumps(raw, indent=2, ensure_ascii=False).encode() + b"\n"
        return text.encode()

    def _files(self) -> tuple[Path, ...]:
        extra = [Path(document.file) for document in self.documents[1:]]
        return (self.path, *extra)

    def _report_unreadable(self, error: OSError) -> None:
        self.problems.append(
            Problem(
                ProblemKind.STORAGE,
                (),
                f"cannot be read: {error.strerror or error}",
                str(self.path),
                fatal=True,
            )
        )

    def _settings(self, raw: JsonObject, generation: int) -> Settings:
        if raw:
            self._report_unknown(raw)
            self._report_idle(raw)
        finite, infinite = take_out_non_finite(raw)
        for path in infinite:
            self._add(
                Finding(
                    ProblemKind.NOT_FINITE,
                    path,
                    "Infinity and NaN are refused; this key is treated as not given",
                )
            )
        env, refused = apply_env_block(raw.get("env"), self.env)
        used = Substitution(env)
        resolved = substitute(finite, used)
        assert isinstance(resolved, dict)  # an object in, an object out
        expand_home(resolved, env.get("OPENCLAW_HOME") or env.get("HOME") or "")
        for finding in (*refused, *used.findings):
            self._add(finding)
        return self._compose(raw, resolved, env, used, generation)

    def _compose(
        self,
        raw: JsonObject,
        resolved: JsonObject,
        env: Mapping[str, str],
        used: Substitution,
        generation: int,
    ) -> Settings:
        hidden = used.secrets | {env.get(name, "") for name in used.used}
        sections = Sections(resolved, hidden=frozenset(hidden))
        claw = sections.read("claw", ClawSettings)
        log = sections.read("logging", LoggingSettings)
        settings = Settings(
            generation=generation,
            gateway=sections.read("gateway", GatewaySettings),
            agents=sections.read("agents", AgentsSettings),
            bindings=sections.read("bindings", BindingsSettings),
            models=with_unusable(sections.read("models", ModelsSettings), used.findings),
            tools=sections.read("tools", ToolsSettings),
            session=sections.read("session", SessionSettings),
            messages=sections.read("messages", MessagesSettings),
            logging=log,
            cron=sections.read("cron", CronSettings),
            commands=sections.read("commands", CommandsSettings),
            skills=sections.read("skills", SkillsSettings),
            approvals=ApprovalsSettings(timeout_ms=claw.approval_timeout_ms),
            permission_mode=claw.permission_mode,
            resume=claw.resume,
            durability=claw.durability,
            trace=claw.trace,
            budgets=claw.budgets,
            raw=MappingProxyType(raw),
            resolved=MappingProxyType(resolved),
            env=MappingProxyType(dict(env)),
            resolved_env_names=used.scrub_names,
            secret_values=frozenset(used.secrets),
        )
        zone = _unknown_zone(settings.agents.defaults.user_timezone)
        for finding in (*sections.findings, *_unreadable_patterns(log), *zone):
            self._add(finding)
        return settings

    def _report_unknown(self, raw: JsonObject) -> None:
        from claw_engine.config.unknown import unknown_keys  # its tables are not for an empty file

        for unknown in unknown_keys(raw):
            near = f"; did you mean {unknown.nearest}?" if unknown.nearest else ""
            message = f"unknown key, kept but not read{near}"
            self._add(Finding(ProblemKind.UNKNOWN_KEY, unknown.path, message), unknown.nearest)

    def _report_idle(self, raw: JsonObject) -> None:
        from claw_engine.config.idle import idle_keys

        for path in idle_keys(raw, SECTIONS):
            message = "kept, but this version does not act on it"
            self._add(Finding(ProblemKind.IDLE_KEY, path, message))

    def _add(self, finding: Finding, nearest: str | None = None) -> None:
        file, line, column = locate(self.documents, finding.path)
        fatal = is_fatal(finding.kind) or _widens_policy(finding)
        self.problems.append(
            Problem(finding.kind, finding.path, finding.message, file, line, column, nearest, fatal)
        )


def _unknown_zone(name: str | None) -> list[Finding]:
    if not name:
        return []
    import zoneinfo  # most files name no zone

    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        message = f"there is no time zone {name!r} here: UTC is used (an IANA name: Europe/Berlin)"
        path = ("agents", "defaults", "userTimezone")
        return [Finding(ProblemKind.UNSUPPORTED, path, message)]
    return []


def _unreadable_patterns(log: LoggingSettings) -> list[Finding]:
    if not log.redact_patterns:
        return []
    from claw_engine.config.redact import compile_pattern  # most files name no pattern

    return [
        Finding(
            ProblemKind.UNSUPPORTED,
            ("logging", "redactPatterns", index),
            "not a regular expression Python can read; it hides nothing",
        )
        for index, pattern in enumerate(log.redact_patterns)
        if compile_pattern(pattern) is None
    ]


def _widens_policy(finding: Finding) -> bool:
    kinds = (ProblemKind.MISSING_VARIABLE, ProblemKind.UNSUPPORTED)
    return finding.kind in kinds and finding.path[:1] != () and finding.path[0] in _POLICY


def locate(documents: list[Document], path: KeyPath) -> tuple[str, int, int]:
    """File, line and column of a path, or of its nearest ancestor, in the file that has most of it;
    of several the main one."""
    best, most = None, -1
    for document in documents:
        mount = len(document.mount)
        if path[:mount] != document.mount:
            continue
        known = len(path)
        while known > mount and not document.spans.get(path[mount:known]):
            known -= 1
        if known > most:
            best, most = document, known
    if best is None:
        return "", 0, 0
    return (best.file, *best.spans.locate(path[len(best.mount) :]))


def expand_home(value: object, home: str) -> None:
    """Put the home directory for a leading `~` under keys that name files. Changes `value`."""
    if not home:
        return
    items = value.items() if isinstance(value, dict) else ()
    for key, item in items:
        if key.lower().endswith(_PATH_KEYS):
            value[key] = _expanded(item, home)  # type: ignore[index]  # items() came from a dict
        else:
            expand_home(item, home)
    if isinstance(value, list):
        for item in value:
            expand_home(item, home)


def _expanded(value: object, home: str) -> object:
    if isinstance(value, list):
        return [_expanded(item, home) for item in value]
    if isinstance(value, str) and (value == "~" or value.startswith("~/")):
        return home.rstrip("/") + value[1:]
    expand_home(value, home)
    return value
