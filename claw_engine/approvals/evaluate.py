"""The verdict over one command line: allow, ask or deny, with every reason in plain words.

Reads files through `FsView` (call it on the disk executor), otherwise pure: the same command,
directory, environment, policy and files give the same verdict. It knows no broker and no console.
What is not fully understood asks, and is never offered "always".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from claw_engine.approvals.allowlist import Match, match_steps
from claw_engine.approvals.binding import bind
from claw_engine.approvals.environment import dangerous
from claw_engine.approvals.fsview import FsView
from claw_engine.approvals.model import AlwaysOffer, Binding, SegmentView
from claw_engine.approvals.offer import offer
from claw_engine.approvals.pinning import pinned_path
from claw_engine.approvals.policy import Ask, ExecPolicy, Rule, Security
from claw_engine.approvals.requote import SHELL, enforced, literal
from claw_engine.approvals.resolve import Resolver, Step
from claw_engine.approvals.risks import command_risks
from claw_engine.approvals.shell import Parsed, parse
from claw_engine.approvals.wrappers import base_name

SAFE_BIN = "safe bin"
"""Shown in the place of a rule when a safe bin's profile covers a part."""

__all__ = ["SAFE_BIN", "SHELL", "Answer", "RuleUse", "Verdict", "evaluate"]


class Answer(StrEnum):
    """What the policy says; ASK means a person decides."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class RuleUse(Struct, frozen=True):
    """A rule that allowed a part of a command, and the real path it allowed."""

    rule: Rule
    resolved: str


class Verdict(Struct, frozen=True):
    """The decision and all that a card shows of it.

    `enforced_argv` is set when rules allowed the command: run exactly this, each program by its
    real path and each word as a literal. `literal_argv` is set for any other that was understood in
    full: what a person allows runs so, each program by the path that was found. Else it runs
    as `SHELL -c command`. `search_path` is PATH for what runs unasked (see pinning.py).
    """

    verdict: Answer
    reasons: tuple[str, ...]
    segments: tuple[SegmentView, ...]
    redirections: tuple[str, ...]
    always: AlwaysOffer
    binding: Binding
    enforced_argv: tuple[str, ...] | None = None
    rules_used: tuple[RuleUse, ...] = ()
    literal_argv: tuple[str, ...] | None = None
    search_path: str = ""

    @property
    def satisfied(self) -> bool:
        """Whether rules cover every part; what an `askFallback` of allowlist looks at."""
        return self.enforced_argv is not None


def evaluate(
    command: str,
    cwd: str,
    env: Mapping[str, str],
    policy: ExecPolicy,
    fs: FsView,
    *,
    workspace: str | None = None,
) -> Verdict:
    """Decide over `command` as it would run in `cwd` with the full child environment `env`.

    `workspace` (default: `cwd`) only words the risk notes. Never raises for any command text.
    """
    parsed = parse(command)
    resolver = Resolver(cwd, env, fs)
    steps = resolver.steps(parsed.segments)
    matches = match_steps(steps, policy, env, fs)
    binding = bind(command, cwd, env, fs, resolver=resolver, steps=steps)
    problems = _problems(parsed, env, binding)
    satisfied = parsed.ok and not problems and all(m.covered for m in matches)
    answer, policy_reason = _decide(policy, satisfied)
    uses = [
        RuleUse(m.rule, step.program.file.real)
        for step, m in zip(steps, matches, strict=True)
        if satisfied and m.rule is not None and step.program is not None
    ]
    return Verdict(
        answer,
        _reasons(problems, steps, matches, policy_reason),
        _views(parsed, steps, matches, workspace or cwd),
        parsed.redirections,
        offer(policy, problems, steps, matches, env, fs),
        binding,
        enforced(parsed, steps) if satisfied else None,
        tuple(uses),
        None if satisfied else literal(parsed, steps),
        pinned_path(env, fs) if satisfied else "",
    )


def _problems(parsed: Parsed, env: Mapping[str, str], binding: Binding) -> tuple[str, ...]:
    found = list(parsed.problems)
    for segment in parsed.segments:
        if segment.expansions:
            pieces = " ".join(dict.fromkeys(segment.expansions))
            found.append(f"leaves {pieces} for the shell to fill in when it runs")
    names = dangerous(env)
    if names:
        found.append("runs with " + ", ".join(names) + " set, which can load other code")
    if not binding.cwd_real:
        found.append("would run in a directory that does not exist")
    return tuple(dict.fromkeys(found))


def _decide(policy: ExecPolicy, satisfied: bool) -> tuple[Answer, str | None]:
    """OpenClaw's table: `always` asks for everything, `on-miss` for what no rule covers."""
    if policy.security is Security.DENY:
        return Answer.DENY, "the policy runs no commands (security = deny)"
    if policy.ask is Ask.ALWAYS:
        return Answer.ASK, "the policy asks for every command (ask = always)"
    if policy.security is Security.FULL or satisfied:
        return Answer.ALLOW, None
    if policy.ask is Ask.OFF:
        return Answer.DENY, "no rule allows it and the policy asks nobody (ask = off)"
    return Answer.ASK, None


def _reasons(
    problems: tuple[str, ...],
    steps: tuple[Step, ...],
    matches: tuple[Match, ...],
    policy_reason: str | None,
) -> tuple[str, ...]:
    misses = (
        f"{base_name(step.word) or step.segment.text}: {match.why}"
        for step, match in zip(steps, matches, strict=True)
        if not match.covered
    )
    first = (policy_reason,) if policy_reason else ()
    return tuple(dict.fromkeys((*first, *problems, *misses)))


def _views(
    parsed: Parsed, steps: tuple[Step, ...], matches: tuple[Match, ...], workspace: str
) -> tuple[SegmentView, ...]:
    return tuple(
        SegmentView(
            segment.text,
            segment.argv,
            step.program.file.real if step.program else None,
            match.rule.label if match.rule else SAFE_BIN if match.safe else None,
            match.why,
            risks,
        )
        for segment, step, match, risks in zip(
            parsed.segments, steps, matches, command_risks(parsed, workspace), strict=True
        )
    )
