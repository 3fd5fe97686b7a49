"""Words on the terminal: texts from outside made harmless, errors in one clear line."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Mapping

from claw_engine.errors import ClawError

_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")


class OutputFailed(ClawError):
    """The answer could not be written to stdout."""

    exit_code = 1

    def __init__(self, error: OSError) -> None:
        super().__init__(f"Cannot write the answer to stdout: {error.strerror or error}.")


def tidy_streams() -> None:
    """Never die of a character the terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    """Control and direction characters as escapes; line ends and tabs stay."""
    if text.isprintable() and not _BIDI.intersection(text):
        return text
    return "".join(
        c
        if c in "\n\t" or (c.isprintable() and c not in _BIDI) or c in "\u200d\ufe0f"
        else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in text
    )


def command_line(text: str, width: int = 0) -> str:
    """A command on one line with nothing hidden or folded: line ends, tabs and joiners as escapes,
    blanks as they are; of a longer one `width` characters (0 = all)."""
    line = "".join(
        c
        if c.isprintable() and c not in _BIDI and c != "\ufe0f"
        else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in text
    )
    return line if not width or len(line) <= width else line[: width - 3] + "..."


def one_line(text: str, width: int = 160) -> str:
    """The text on one line, made visible, at most `width` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 3] + "..."


def say(text: str) -> None:
    """An answer, on stdout; made harmless: what it is piped to (less, head) writes to a terminal.
    `--json` has the exact text."""
    with _written():
        print(visible(text))


def note(text: str) -> None:
    """Something on the side, on stderr."""
    print(visible(text), file=sys.stderr, flush=True)


def say_json(value: Mapping[str, object]) -> None:
    with _written():
        print(json.dumps(value, ensure_ascii=False), flush=True)


def flush() -> None:
    """Hand over what was said. Raises OutputFailed, BrokenPipeError."""
    with _written():
        sys.stdout.flush()


@contextlib.contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(error) from error


def say_error(error: ClawError, *, as_json: bool) -> int:
    """What went wrong and how to mend it; returns the exit code (see `__main__`)."""
    if as_json:
        found = {"message": error.title, "hint": error.hint, "details": dict(error.details)}
        say_json({"ok": False, "error": found})
    stop = "" if not error.hint or error.title.endswith((".", "!", "?", ":")) else "."
    note(f"claw: {error.title}{stop} {error.hint}".rstrip())
    # The engine answered and said no: 1. Nobody to ask, or asked wrongly: 2.
    code: int = getattr(error, "exit_code", 1 if hasattr(error, "wire_code") else 2)
    return code
