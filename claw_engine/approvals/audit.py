"""Audits how much runs without a question: policy words, rules that are wide, safe bins."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from claw_engine.approvals import rulefile
from claw_engine.approvals.policy import Ask, ExecPolicy, Rule, Security
from claw_engine.approvals.programs import Kind, classify
from claw_engine.approvals.safe_bins import configured
from claw_engine.audit import Finding, Severity, Subject

_RUNS_OTHERS = frozenset(
    {Kind.INTERPRETER, Kind.SHELL, Kind.LAUNCHER, Kind.WRAPPER, Kind.BLOCKED_WRAPPER,
     Kind.PRIVILEGE, Kind.MULTIPLEXER}
)  # fmt: skip
RISKY_DIRS = ("/tmp", "/var/tmp", "/home", "/root", "/usr/local/bin", "/opt/homebrew/bin")
"""Directories of which an agent or an installer may write programs."""


def check(subject: Subject) -> Iterator[Finding]:
    chosen = subject.settings.tools.exec
    try:
        raw = subject.state.exec_approvals.read_bytes()
    except OSError:
        raw = b""
    file = rulefile.read(raw) if raw else rulefile.empty()
    if file.problem:
        yield Finding(
            "claw.approvals.file_damaged", Severity.WARN, "The rules file counts as empty.",
            f"{subject.state.exec_approvals}: {file.problem}.", "Mend it, or put it aside.",
        )  # fmt: skip
    caller = ExecPolicy(Security(chosen.security), Ask(chosen.ask))
    for agent in dict.fromkeys((*(entry.id for entry in subject.settings.agents.list), "main")):
        policy = rulefile.policy(file, agent, caller).tightened(chosen.security, chosen.ask)
        if policy.security is Security.FULL and policy.ask is not Ask.ALWAYS:
            yield Finding(
                "claw.exec.runs_everything", Severity.CRITICAL,
                f"Agent {agent} runs any command without a question.",
                f"security full, ask {policy.ask.value} (configuration and rules file agree).",
                "Set tools.exec.security to allowlist.",
            )  # fmt: skip
        if policy.ask_fallback is Security.FULL:
            yield Finding(
                "claw.exec.fallback_runs_everything", Severity.CRITICAL,
                f"What nobody answers in time runs (agent {agent}).", "askFallback is full.",
                "Set it to deny in exec-approvals.json.",
            )  # fmt: skip
    for rule in rulefile.rules(file):
        yield from _rule(rule)
    yield from _safe_bins(subject)
    yield from _search_path(subject)


def _rule(rule: Rule) -> Iterator[Finding]:
    name = PurePosixPath(rule.pattern).name
    where = f"exec-approvals.json, agent {rule.agent_id}, rule {rule.id[:8]}: {rule.pattern}"
    if rule.pattern in ("*", "**", "/**", "/*"):
        yield Finding(
            "claw.exec.rule_allows_all", Severity.CRITICAL, "A rule allows every program.",
            f"{where}.", "Take it back: claw approvals undo ID.",
        )  # fmt: skip
    elif not rule.is_glob and classify(name) in _RUNS_OTHERS and rule.arg_pattern is None:
        yield Finding(
            "claw.exec.rule_runs_others", Severity.WARN,
            f"A rule allows {name} with any arguments, so any program.",
            f"{where}. Shells, interpreters and wrappers are honoured under no rule; others are.",
            "Give the rule an argPattern, or take it back.",
        )  # fmt: skip


def _search_path(subject: Subject) -> Iterator[Finding]:
    """Directories in which commands are looked up, and who could put another program there."""
    named = subject.settings.env.get("PATH") or subject.env.get("PATH", "")
    folders = [*subject.settings.tools.exec.path_prepend, *(named.split(":") if named else ())]
    for folder in dict.fromkeys(folders):
        if not folder.startswith("/"):
            yield Finding(
                "claw.exec.path_relative", Severity.WARN,
                "Programs are looked up where a command happens to run.",
                f"PATH has {folder!r}.", "Name directories by their whole path.",
            )  # fmt: skip
            continue
        try:
            found = Path(folder).stat()
        except OSError:
            continue
        loose = found.st_mode & 0o022
        if loose or found.st_uid not in (0, os.geteuid()):
            why = (
                f"mode {stat.S_IMODE(found.st_mode):o}" if loose else f"user {found.st_uid} owns it"
            )
            severity = Severity.CRITICAL if found.st_mode & 0o002 else Severity.WARN
            yield Finding(
                "claw.exec.path_dir_writable", severity,
                "Others can put programs where commands are looked up.",
                f"{folder} on PATH: {why}.", "Take that right away, or the directory off PATH.",
            )  # fmt: skip


def _safe_bins(subject: Subject) -> Iterator[Finding]:
    chosen = subject.settings.tools.exec
    safe = configured(chosen.safe_bins, chosen.safe_bin_trusted_dirs, chosen.safe_bin_profiles)
    ignored = safe.ignored if safe is not None else ()
    named = [name for name in ignored if classify(name) in _RUNS_OTHERS]
    if named:
        yield Finding(
            "tools.exec.safe_bins_interpreter_unprofiled", Severity.WARN,
            "Programs that run other programs are listed as safe, without a profile.",
            f"tools.exec.safeBins: {', '.join(named)}. They are left out.", "Take them out.",
        )  # fmt: skip
    risky = [
        folder for folder in chosen.safe_bin_trusted_dirs
        if any(folder == place or folder.startswith(f"{place}/") for place in RISKY_DIRS)
        or not folder.startswith("/")
    ]  # fmt: skip
    if risky:
        yield Finding(
            "tools.exec.safe_bin_trusted_dirs_risky", Severity.WARN,
            "Directories in which programs can be put count as safe.",
            f"tools.exec.safeBinTrustedDirs: {', '.join(risky)}.",
            "List only directories that root alone writes.",
        )  # fmt: skip
