"""Whether a rule allows a program file. Decides over real paths only, never over names.

Globs are OpenClaw's (`*` within a path part, `**` across, `?` one character). Two things are
stricter: case counts (file systems here tell `ID` from `id`), and a pattern that covers many
files never covers one that the agent's own tools could have written.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from msgspec import Struct

from claw_engine.approvals.arguments import matches
from claw_engine.approvals.fsview import FileId, FsView
from claw_engine.approvals.pinning import interpreter_of
from claw_engine.approvals.policy import ExecPolicy, Rule
from claw_engine.approvals.programs import Kind, refusal
from claw_engine.approvals.resolve import Program, Step
from claw_engine.approvals.safe_bins import SafeBins
from claw_engine.approvals.wrappers import base_name

_NEVER = frozenset(Kind) - {Kind.PLAIN, Kind.LAUNCHER}


class Match(Struct, frozen=True):
    """The rule that allows a step, or None; `why` says it in a short sentence either way.

    `safe` means that no rule is needed: a safe bin in a use that its profile knows.
    """

    rule: Rule | None
    why: str
    safe: bool = False

    @property
    def covered(self) -> bool:
        return self.safe or self.rule is not None


def match_steps(
    steps: tuple[Step, ...], policy: ExecPolicy, env: Mapping[str, str], fs: FsView
) -> tuple[Match, ...]:
    """Find what allows the program that each step finally runs: the first rule, or a safe bin."""
    return tuple(map(_Judge(policy, env, fs).match, steps))


class _Judge:
    """Serves one decision: what does not hang on the arguments is found once for each program."""

    def __init__(self, policy: ExecPolicy, env: Mapping[str, str], fs: FsView) -> None:
        self._policy = policy
        self._env = env
        self._fs = fs
        self._places: dict[str, list[int]] = {}
        for place, rule in enumerate(policy.rules):
            self._places.setdefault(_file_name(rule.pattern), []).append(place)
        self._naming: dict[str, tuple[Rule, ...]] = {}
        self._known: dict[tuple[str, str], Match] = {}

    def match(self, step: Step) -> Match:
        called = step.called
        known = self._known.get(called) if called else None
        if known is not None:
            return known
        program = step.program
        if step.segment.argv and step.kind in _NEVER:
            sentence = refusal(step.kind, base_name(step.word))
            return Match(None, step.unwrapped.problem or sentence or "")
        blocker = step_blocker(step, self._env, self._fs)
        if blocker or program is None:
            return Match(None, blocker or "no such program")
        rules = self._rules(program.file)
        found = self._judged(step, program, rules)
        any_arguments = all(rule.arg_pattern is None for rule in rules)
        if called and any_arguments and (found.rule is not None or self._policy.safe_bins is None):
            self._known[called] = found
        return found

    def _rules(self, file: FileId) -> tuple[Rule, ...]:
        """The rules that name a file."""
        found = self._naming.get(file.real)
        if found is None:
            home, fs, places = self._env.get("HOME", ""), self._fs, self._places
            possible = places.get(base_name(file.real), []) + places.get(_ANY_NAME, [])
            rules = (self._policy.rules[place] for place in sorted(possible))
            found = tuple(r for r in rules if pattern_matches(r.pattern, file, home, fs))
            self._naming[file.real] = found
        return found

    def _judged(self, step: Step, program: Program, rules: tuple[Rule, ...]) -> Match:
        why, fs = "no rule matches", self._fs
        for rule in rules:
            objection = _objection(rule, step, program.file, fs)
            if objection is None:
                return Match(rule, f"allowed by {rule.label}{_breadth(rule, step.kind)}")
            why = objection
        safe, name = self._policy.safe_bins, base_name(program.file.real)
        if safe is None or name not in safe.profiles:
            if safe is not None and name in safe.ignored:
                why = f"{name} is in safeBins, but has no profile"
            return Match(None, why)
        unsafe = _unsafe(step, program, safe, fs)
        if unsafe:
            return Match(None, unsafe)
        return Match(None, "a safe bin, used as a filter", safe=True)


def _breadth(rule: Rule, kind: Kind) -> str:
    if rule.pattern == "*":
        return " (this rule allows every program)"
    if kind is Kind.LAUNCHER and rule.arg_pattern is None:
        return " with any arguments (so it can start any other program)"
    return ""


def _unsafe(step: Step, program: Program, safe: SafeBins, fs: FsView) -> str | None:
    folder, _, name = program.file.real.rpartition("/")
    if fs.writable(program.file):
        return f"the agent could have written {program.file.real}, so it is no safe bin"
    return safe.objection(name, folder, step.arguments)


def step_blocker(step: Step, env: Mapping[str, str], fs: FsView) -> str | None:
    """Why no rule whatever can decide this step; None when one could."""
    if not step.segment.argv:
        return "only sets variables"
    if step.unwrapped.problem:
        return step.unwrapped.problem
    if step.kind is Kind.BUILTIN:
        return refusal(Kind.BUILTIN, step.word)
    if any(program is None for program in step.programs):
        return "no such program on PATH" if "/" not in step.word else "no such program file"
    for wrapper in step.programs[:-1]:
        if wrapper is not None and not _trusted_wrapper(wrapper, fs):
            return f"{wrapper.word} is not the system's own {base_name(wrapper.word)}"
    return _other_name(step.program) or interpreter_of(step.program, env, fs).objection


def pattern_matches(pattern: str, file: FileId, home: str, fs: FsView) -> bool:
    """Whether a pattern names this file by its real path. A bare name is ignored, `*` matches."""
    if pattern in (file.real, "*"):
        return True
    if pattern.startswith("~") and pattern[1:2] in ("", "/"):
        pattern = home + pattern[1:]
    if pattern.endswith(file.real[file.real.rfind("/") :]) and not _wild(pattern):
        return pattern == file.real or _same_system_file(pattern, file, fs)
    return _wild(pattern) and _glob(pattern).fullmatch(file.real) is not None


_ANY_NAME = "*"


@functools.lru_cache(maxsize=4096)
def _file_name(pattern: str) -> str:
    """The name of all files that a pattern can stand for; `_ANY_NAME` when they differ."""
    return _ANY_NAME if pattern in ("*", "~") or _wild(pattern) else base_name(pattern)


@functools.lru_cache(maxsize=4096)
def _wild(pattern: str) -> bool:
    """Whether a pattern stands for more than one path. One without a slash is none."""
    return "/" in pattern and ("*" in pattern or "?" in pattern)


def _same_system_file(pattern: str, file: FileId, fs: FsView) -> bool:
    """`/bin/ls` and `/usr/bin/ls` are one file where /bin is the system's own symlink.

    Elsewhere a pattern that goes through a symlink never matches: who can re-point the link would
    take the grant along.
    """
    if not fs.is_system(file) or base_name(pattern) != base_name(file.real):
        return False
    named = fs.file(pattern)
    return (
        named is not None
        and named.real == file.real
        and pattern.startswith(("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"))
    )


def _objection(rule: Rule, step: Step, file: FileId, fs: FsView) -> str | None:
    if rule.arg_pattern is not None and not matches(rule.arg_pattern, step.arguments):
        return f"{rule.label} does not cover these arguments"
    if rule.is_glob and step.kind is Kind.LAUNCHER:
        return f"{rule.pattern} does not cover programs that can start others"
    if rule.content_hash is not None:
        if fs.sha256(file) != rule.content_hash:
            return f"the content of {file.real} changed since it was allowed"
        return None
    if fs.writable(file):
        return (
            f"the agent could have written {file.real}, and {rule.pattern} is not bound to its "
            "content"
        )
    return None


def _trusted_wrapper(wrapper: Program, fs: FsView) -> bool:
    return (
        fs.is_system(wrapper.file)
        and not fs.writable(wrapper.file)
        and base_name(wrapper.file.real) == base_name(wrapper.word)
    )


def _other_name(program: Program | None) -> str | None:
    """Many programs look at the name they are called by (`unxz` is `xz`): only the true one is
    decided by a rule, because what is allowed runs by its real path."""
    if program is None or base_name(program.word) == base_name(program.file.real):
        return None
    return f"{base_name(program.word)} is another name of {program.file.real}"


@functools.lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    pieces = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*|\*|\?)", pattern)
    return re.compile("".join(pieces.get(p) or re.escape(p) for p in parts), re.DOTALL)
