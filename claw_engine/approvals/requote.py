"""What we say is what runs: an understood command put together again from its words.

Pure. Each program stands by a path, each word as a literal; one program runs without any shell.
"""

from __future__ import annotations

import shlex

from claw_engine.approvals.programs import Kind
from claw_engine.approvals.resolve import Step
from claw_engine.approvals.shell import Parsed

SHELL = "/bin/sh"


def enforced(parsed: Parsed, steps: tuple[Step, ...]) -> tuple[str, ...]:
    """What rules allowed, each program by its real path. Every step has its programs."""
    return _joined(parsed, [_argv(step, real=True) for step in steps])


def literal(parsed: Parsed, steps: tuple[Step, ...]) -> tuple[str, ...] | None:
    """What a person allows, each program by the path at which it was found (many programs look at
    the name they are called by); None when a shell has to make something of the text."""
    if not parsed.ok or not steps:
        return None
    for step in steps:
        if step.kind is Kind.BUILTIN or None in step.programs or not step.segment.argv:
            return None
    return _joined(parsed, [_argv(step, real=False) for step in steps])


def _joined(parsed: Parsed, commands: list[tuple[str, ...]]) -> tuple[str, ...]:
    if len(commands) == 1:
        return commands[0]
    text = shlex.join(commands[0])
    for operator, argv in zip(parsed.operators, commands[1:], strict=True):
        text += f" {operator} {shlex.join(argv)}"
    return (SHELL, "-c", text)


def _argv(step: Step, *, real: bool) -> tuple[str, ...]:
    argv = list(step.segment.argv)
    for index, program in zip(step.unwrapped.programs, step.programs, strict=True):
        if program is not None:
            argv[index] = program.file.real if real else program.path
    return tuple(argv)
