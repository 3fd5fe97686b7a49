"""The permission modes in words: what each opens. Pure; what is enforced is the engine's."""

from __future__ import annotations

from msgspec import Struct


class Mode(Struct, frozen=True):
    name: str
    short: str
    opens: str


MODES = (
    Mode(
        "look",
        "no commands, no writes",
        "The agent can read and talk. It runs no command and writes no file; nothing asks you.",
    ),
    Mode(
        "guarded",
        "commands and files outside the workspace ask",
        "Files in the workspace are written unasked. Commands that no rule or grant covers, and "
        "files elsewhere, ask you each time.",
    ),
    Mode(
        "workspace",
        "commands run unasked where they are confined",
        "Commands run without asking, inside a sandbox that can write the workspace only. Where no "
        "sandbox works, this is the same as guarded.",
    ),
    Mode(
        "full",
        "NOTHING asks, for an hour",
        "For one hour the agent runs every command and touches every file of this account without "
        "asking, also what a web page or a mail talks it into. Only the state directory stays "
        "closed. You will be asked once more.",
    ),
)

SURE = (
    "Really let everything run unasked?",
    (
        "Every agent and every session of this engine, until the hour is over or you switch back.",
        "What is waiting for you now still waits. What runs by then goes on.",
        "The status line says FULL all the time.",
    ),
)
"""The second question before `full`: title and lines."""
