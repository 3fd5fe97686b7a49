"""What "always" would store for a command, or why nothing: the narrowest rule that is honest.

Reads files through `FsView`. A program that runs what it is given is offered only with exactly
these arguments, and only where those start nothing; shells and interpreters never.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from claw_engine.approvals.allowlist import Match, step_blocker
from claw_engine.approvals.arguments import exactly, narrow
from claw_engine.approvals.fsview import FsView
from claw_engine.approvals.model import AlwaysOffer
from claw_engine.approvals.policy import ExecPolicy, Security, labelled
from claw_engine.approvals.programs import Kind, refusal, writes_anywhere
from claw_engine.approvals.resolve import Step
from claw_engine.approvals.wrappers import base_name


class _Draft(Struct):
    """What is collected while the parts are looked at."""

    patterns: dict[str, None] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)


def offer(
    policy: ExecPolicy,
    problems: tuple[str, ...],
    steps: tuple[Step, ...],
    matches: tuple[Match, ...],
    env: Mapping[str, str],
    fs: FsView,
) -> AlwaysOffer:
    """The rules that would let this command run unasked from now on, for the parts without one."""
    if policy.security is not Security.ALLOWLIST:
        return AlwaysOffer(refusal="rules decide only while security = allowlist")
    if not problems and all(match.covered for match in matches):
        return AlwaysOffer(refusal="rules already cover this command")
    draft = _Draft()
    for step, match in zip(steps, matches, strict=True):
        if not match.covered:
            objection = _add(step, env, fs, draft)
            if objection:
                return AlwaysOffer(refusal=objection)
    if problems:
        return AlwaysOffer(
            refusal=f"only a plain command can be allowed for ever; this one {problems[0]}"
        )
    return AlwaysOffer(
        tuple(draft.patterns), None, draft.hashes,
        arguments=draft.arguments, notes=tuple(draft.notes),
    )  # fmt: skip


def _add(step: Step, env: Mapping[str, str], fs: FsView, draft: _Draft) -> str | None:
    """Put the rule for one step into the draft; or say why there can be none."""
    name = base_name(step.word)
    still: str | None = None
    if step.kind is Kind.LAUNCHER and step.program and not fs.writable(step.program.file):
        still = narrow(base_name(step.program.file.real), step.arguments)
    if step.kind is not Kind.PLAIN and still is None:
        return _advice(step, refusal(step.kind, name) or "")
    blocker = step_blocker(step, env, fs)
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
        draft.hashes[real] = digest
    if still is not None:
        label = labelled(real, step.arguments)
        draft.patterns[label] = None
        draft.arguments[label] = (real, exactly(step.arguments))
        draft.notes[
            f"{name} with any arguments could start any program, so only exactly these are "
            f"offered; {still}"
        ] = None
        return None
    draft.patterns[real] = None
    if writes_anywhere(base_name(real)):
        draft.notes[
            f"{name} with any arguments can overwrite or remove every file that commands may write"
        ] = None
    return None


def _advice(step: Step, sentence: str) -> str:
    if step.kind in (Kind.SHELL, Kind.MULTIPLEXER) and "-c" in step.segment.argv:
        return sentence + "; let the agent run the inner command by itself and allow that"
    if step.kind is Kind.LAUNCHER and step.program is not None:
        return sentence + "; you can write a rule with an argPattern by hand"
    return sentence
