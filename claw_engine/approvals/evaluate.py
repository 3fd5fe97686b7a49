"""The verdict over one command line: allow, ask or deny, with every reason in plain words.

Reads files through `FsView` (call it on the disk executor), otherwise pure: the same command,
directory, environment, policy and files give the same verdict. It knows no broker and no console.
What is not fully understood asks, and is never offered "always".
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from claw_engine.approvals.allowlist import Match, match_step, step_blocker
from claw_engine.approvals.binding import bind
from claw_engine.approvals.environment import dangerous
from claw_engine.approvals.fsview import FsView
from claw_engine.approvals.model import AlwaysOffer, Binding, SegmentView
from claw_engine.approvals.policy import Ask, ExecPolicy, Rule, Security
from claw_engine.approvals.programs import Kind, refusal
from claw_engine.approvals.resolve import Resolver, Step
from claw_engine.approvals.risks import redirection_risks, risk_notes
from claw_engine.approvals.shell import Parsed, parse
from claw_engine.approvals.wrappers import base_name

SHELL = "/bin/sh"


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
    real path and each word as a literal. Else the command runs as `SHELL -c command`, once
    somebody (or a policy that asks nobody) has allowed it.
    """

    verdict: Answer
    reasons: tuple[str, ...]
    segments: tuple[SegmentView, ...]
    redirections: tuple[str, ...]
    always: AlwaysOffer
    binding: Binding
    enforced_argv: tuple[str, ...] | None = None
    rules_used: tuple[RuleUse, ...] = ()

    @property
    def satisfied(self) -> bool:
        """Whether rules cover every part; what an `askFallback` of allowlist looks at."""
        return bool(self.rules_used)


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
    matches = tuple(match_step(step, policy.rules, env, fs) for step in steps)
    binding = bind(command, cwd, env, fs, parsed=parsed, resolver=resolver)
    problems = _problems(parsed, env, binding)
    satisfied = parsed.ok and not problems and all(m.rule is not None for m in matches)
    answer, policy_reason = _decide(policy, satisfied)
    uses = tuple(
        RuleUse(m.rule, step.program.file.real)
        for step, m in zip(steps, matches, strict=True)
        if satisfied and m.rule is not None and step.program is not None
    )
    return Verdict(
        answer,
        _reasons(problems, steps, matches, policy_reason),
        _views(parsed, steps, matches, workspace or cwd),
        parsed.redirections,
        _always(policy, problems, steps, matches, satisfied, fs),
        binding,
        _enforced(parsed, steps) if satisfied else None,
        uses,
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
        if match.rule is None
    )
    first = (policy_reason,) if policy_reason else ()
    return tuple(dict.fromkeys((*first, *problems, *misses)))


def _views(
    parsed: Parsed, steps: tuple[Step, ...], matches: tuple[Match, ...], workspace: str
) -> tuple[SegmentView, ...]:
    views: list[SegmentView] = []
    extra = redirection_risks(parsed.redirections, workspace)
    for index, (step, match) in enumerate(zip(steps, matches, strict=True)):
        piped = index > 0 and parsed.operators[index - 1] in ("|", "|&")
        notes = risk_notes(
            step.segment.argv,
            workspace=workspace,
            piped_from=steps[index - 1].segment.argv if piped else None,
        )
        views.append(
            SegmentView(
                step.segment.text,
                step.segment.argv,
                step.program.file.real if step.program else None,
                match.rule.pattern if match.rule else None,
                match.why,
                tuple(dict.fromkeys((*notes, *extra))),
            )
        )
    return tuple(views)


def _enforced(parsed: Parsed, steps: tuple[Step, ...]) -> tuple[str, ...]:
    commands = [_real_argv(step) for step in steps]
    if len(commands) == 1:
        return commands[0]
    text = shlex.join(commands[0])
    for operator, argv in zip(parsed.operators, commands[1:], strict=True):
        text += f" {operator} {shlex.join(argv)}"
    return (SHELL, "-c", text)


def _real_argv(step: Step) -> tuple[str, ...]:
    argv = list(step.segment.argv)
    for index, program in zip(step.unwrapped.programs, step.programs, strict=True):
        if program is not None:
            argv[index] = program.file.real
    return tuple(argv)


def _always(
    policy: ExecPolicy,
    problems: tuple[str, ...],
    steps: tuple[Step, ...],
    matches: tuple[Match, ...],
    satisfied: bool,
    fs: FsView,
) -> AlwaysOffer:
    if policy.security is not Security.ALLOWLIST:
        return AlwaysOffer(refusal="rules decide only while security = allowlist")
    if satisfied:
        return AlwaysOffer(refusal="rules already cover this command")
    hashes: dict[str, str] = {}
    patterns: dict[str, None] = {}
    for step, match in zip(steps, matches, strict=True):
        if match.rule is not None:
            continue
        objection = _never_always(step, fs, hashes)
        if objection:
            return AlwaysOffer(refusal=objection)
        if step.program is not None:
            patterns[step.program.file.real] = None
    if problems:
        return AlwaysOffer(
            refusal=f"only a plain command can be allowed for ever; this one {problems[0]}"
        )
    return AlwaysOffer(tuple(patterns), None, hashes)


def _never_always(step: Step, fs: FsView, hashes: dict[str, str]) -> str | None:
    """Why this step cannot be offered; fills `hashes` for a file that must be bound."""
    name = base_name(step.word)
    if step.kind is not Kind.PLAIN:
        return _advice(step, refusal(step.kind, name) or "")
    blocker = step_blocker(step, fs)
    program = step.program
    if blocker or program is None:
        return blocker or "no such program"
    real = program.file.real
    if any(char in real for char in "*?~\\") or not real.isprintable():
        return f"the path of {name} has characters that mean something else in a rule"
    if fs.writable(program.file):
        digest = fs.sha256(program.file)
        if digest is None:
            return f"{real} cannot be read, so a rule could not be bound to its content"
        hashes[real] = digest
    return None


def _advice(step: Step, sentence: str) -> str:
    if step.kind in (Kind.SHELL, Kind.MULTIPLEXER) and "-c" in step.segment.argv:
        return sentence + "; let the agent run the inner command by itself and allow that"
    return sentence
