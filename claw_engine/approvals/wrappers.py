"""Looking through the simple forms of `env`, `nice`, `nohup`, `stdbuf` and `timeout`.

Pure: words in, positions of program words out. A wrapper with an option or assignment that is not
listed here is not looked through, and the segment asks.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from claw_engine.approvals.programs import WRAPPERS
from claw_engine.patterns import late

MAX_DEPTH = 4
_NUMBER = late(r"[+-]?\d{1,3}")
_DURATION = late(r"\d+(?:\.\d+)?[smhd]?")
_BUFFER = late(r"-[ioe](?:L|0|\d+[KMG]?)|--(?:input|output|error)=(?:L|0|\d+[KMG]?)")
_SIGNAL = late(r"(?:SIG)?[A-Z0-9+]{1,12}")


class Unwrapped(Struct, frozen=True):
    """Indexes of the program words in an argv, outermost wrapper first, the real program last.

    `problem` is set when a wrapper could not be looked through; then the last index is that
    wrapper's own.
    """

    programs: tuple[int, ...]
    problem: str | None = None


DIRECT = Unwrapped((0,))
"""No wrapper at all: the first word is the program."""


def base_name(word: str) -> str:
    """The file name of a program word."""
    return word.rsplit("/", 1)[-1]


def unwrap(argv: tuple[str, ...]) -> Unwrapped:
    """Find the program that an argv finally runs. `argv` has at least one word."""
    if base_name(argv[0]) not in WRAPPERS:
        return DIRECT
    programs = [0]
    while True:
        at = programs[-1]
        name = base_name(argv[at])
        if name not in WRAPPERS:
            return Unwrapped(tuple(programs))
        if len(programs) > MAX_DEPTH:
            return Unwrapped(tuple(programs), f"nests more than {MAX_DEPTH} wrappers")
        inner = _INNER[name](argv, at + 1)
        if inner is None:
            return Unwrapped(tuple(programs), f"{name} is used with options that are not followed")
        if inner >= len(argv):
            return Unwrapped(tuple(programs), f"{name} names no program")
        programs.append(inner)


def _no_options(argv: tuple[str, ...], at: int) -> int | None:
    return None if at < len(argv) and argv[at].startswith("-") else at


def _env(argv: tuple[str, ...], at: int) -> int | None:
    return None if at < len(argv) and "=" in argv[at] else _no_options(argv, at)


def _nice(argv: tuple[str, ...], at: int) -> int | None:
    if at + 1 < len(argv) and argv[at] == "-n" and _NUMBER.fullmatch(argv[at + 1]):
        at += 2
    return _no_options(argv, at)


def _stdbuf(argv: tuple[str, ...], at: int) -> int | None:
    while at < len(argv) and _BUFFER.fullmatch(argv[at]):
        at += 1
    return _no_options(argv, at)


def _timeout(argv: tuple[str, ...], at: int) -> int | None:
    while at < len(argv) and argv[at].startswith("-"):
        following = argv[at + 1] if at + 1 < len(argv) else ""
        match argv[at]:
            case "--preserve-status" | "--foreground" | "-v" | "--verbose":
                at += 1
            case "-k" if _DURATION.fullmatch(following):
                at += 2
            case "-s" if _SIGNAL.fullmatch(following):
                at += 2
            case _:
                return None
    if at >= len(argv) or not _DURATION.fullmatch(argv[at]):
        return None
    return _no_options(argv, at + 1)


_INNER: dict[str, Callable[[tuple[str, ...], int], int | None]] = {
    "env": _env,
    "nice": _nice,
    "nohup": _no_options,
    "stdbuf": _stdbuf,
    "timeout": _timeout,
}
