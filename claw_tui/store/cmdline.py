"""The `:` line: names, arguments and completion. Pure; what a command does lives elsewhere."""

from __future__ import annotations

import difflib

from msgspec import Struct


class Verb(Struct, frozen=True):
    name: str
    argument: str
    summary: str
    key: str = ""

    @property
    def optional(self) -> bool:
        """Whether it can stand alone although it takes an argument."""
        return self.argument.startswith("[")


VERBS = (
    Verb("stop", "", "stop the selected session's run", "s"),
    Verb("stopall", "", "stop every run and pause", "X X"),
    Verb("pause", "", "start no new runs", "P"),
    Verb("resume", "", "start runs again", "P"),
    Verb("approvals", "", "open the approval queue", "a"),
    Verb("mode", "", "permission mode: what runs without asking", "m"),
    Verb("prompt", "", "what was sent to the model, part by part", "2"),
    Verb("lanes", "", "what runs and waits: width, order, drop", "6"),
    Verb("logs", "", "the engine's log: follow, filter, look back", "9"),
    Verb("runs", "", "past runs of this session, and their replay"),
    Verb("interrupted", "", "runs that a restart cut short"),
    Verb("notices", "", "everything that stands to be read, in full"),
    Verb("session", "KEY", "open a session"),
    Verb("new", "NAME", "start a session of that name"),
    Verb("theme", "[NAME]", "change the theme; alone: read the theme files again"),
    Verb("redraw", "", "paint the whole screen again", "ctrl+l"),
    Verb("help", "", "all keys", "?"),
    Verb("quit", "", "quit dialog", "q"),
)
_BY_NAME = {verb.name: verb for verb in VERBS}


class Parsed(Struct, frozen=True):
    verb: Verb | None
    argument: str
    problem: str = ""


def parse(raw: str) -> Parsed:
    """Read a command line; a problem says what to type instead."""
    name, _, argument = raw.strip().removeprefix(":").strip().partition(" ")
    argument = argument.strip()
    verb = _BY_NAME.get(name)
    if not name:
        return Parsed(None, "", "nothing typed")
    if verb is None:
        near = difflib.get_close_matches(name, _BY_NAME, 1)
        return Parsed(
            None,
            "",
            f"no command {name}" + (f"; did you mean {near[0]}?" if near else "; ? lists them"),
        )
    if verb.argument and not verb.optional and not argument:
        return Parsed(None, "", f"{name} needs {verb.argument}")
    return Parsed(verb, argument)


def complete(raw: str, sessions: list[str], themes: list[str]) -> list[str]:
    """What could stand where the cursor is, whole lines."""
    name, space, argument = raw.partition(" ")
    if not space:
        return [verb.name for verb in VERBS if verb.name.startswith(name)]
    pool = {"session": sessions, "theme": themes}.get(name, [])
    return [f"{name} {item}" for item in pool if argument in item]
