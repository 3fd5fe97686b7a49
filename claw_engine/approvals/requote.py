"""What we say is what runs: an understood command put together again from its words.

Pure. Each program stands by a path, each word as a literal; one program runs without any shell.
"""

from __future__ import annotations

import re
import shlex

from claw_engine.approvals.programs import Kind
from claw_engine.approvals.resolve import Step
from claw_engine.approvals.shell import Parsed
from claw_engine.patterns import late

SHELL = "/bin/sh"
_PLAIN = late(r"[\w@%+=:,./ -]+", re.ASCII)


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
    text = [_text(commands[0])]
    for operator, argv in zip(parsed.operators, commands[1:], strict=True):
        text += operator, _text(argv)
    return (SHELL, "-c", " ".join(text))


def _text(argv: tuple[str, ...]) -> str:
    """As shlex.join, which looks at each word by itself."""
    text = " ".join(argv)
    if "" not in argv and text.count(" ") == len(argv) - 1 and _PLAIN.fullmatch(text):
        return text
    return shlex.join(argv)


def _argv(step: Step, *, real: bool) -> tuple[str, ...]:
    program = step.program
    if len(step.programs) == 1 and program is not None:
        return (program.file.real if real else program.path, *step.segment.argv[1:])
    argv = list(step.segment.argv)
    for index, program in zip(step.unwrapped.programs, step.programs, strict=True):
        if program is not None:
            argv[index] = program.file.real if real else program.path
    return tuple(argv)
