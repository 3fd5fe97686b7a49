"""Slash commands and stop phrases: what the engine answers itself, without a model.

A registry; each room adds its own commands at wiring. Only sources that are the operator's own may
use it; the dispatcher checks that. Stop phrases: agent digest §1.13.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

STOP_COMMAND = "/stop"
STOP_WORDS = frozenset(
    {
        "stop", "esc", "abort", "wait", "exit", "interrupt", "halt",
        "please stop", "stop please", "stop run", "stop agent", "stop claw", "stop openclaw",
        "do not do that", "don't do that",
        "para", "detente", "alto",                          # Spanish
        "arrête", "arrete", "stoppe",                       # French
        "stopp", "anhalten", "abbrechen", "halt an",        # German
        "pare", "parar",                                    # Portuguese
        "停止", "停", "停下", "中止",                        # Chinese
        "やめて", "止めて", "ストップ",                      # Japanese
        "रुको", "रुकें", "बंद करो",                          # Hindi
        "توقف", "قف",                                       # Arabic
        "стоп", "остановись", "хватит",                     # Russian
    }
)  # fmt: skip
"""Whole messages that stop a run that is going on."""

_EDGES = " \t\r\n.,;:!?…。！？、，'\"()[]*_-"


def is_stop_command(text: str) -> bool:
    """`/stop`, with nothing else."""
    return text.strip().lower() == STOP_COMMAND


def is_stop_phrase(text: str) -> bool:
    """A bare word or short phrase of the list; means stop only while something runs."""
    if len(text) > 64:
        return False
    return " ".join(text.strip(_EDGES).lower().split()) in STOP_WORDS


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command as typed; `args` is the rest of the line."""

    name: str
    args: str
    session_key: str


@dataclass(frozen=True, slots=True)
class Command:
    """`name` with its slash, `summary` one line for /help; `run` gives the answer's text."""

    name: str
    summary: str
    run: Callable[[CommandCall], Awaitable[str]]


class Commands:
    """The commands there are. `/help` and `/stop` are always listed."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self.register(Command("/help", "lists these commands", self._help))

    def register(self, command: Command) -> None:
        """Add a command. Raises ValueError for a name that is taken or has no slash."""
        name = command.name
        if not name.startswith("/") or name in self._commands or name == STOP_COMMAND:
            raise ValueError(f"command {name} cannot be registered")
        self._commands[name] = command

    def find(self, text: str, session_key: str) -> tuple[Command, CommandCall] | None:
        """The command a message calls; None means the message is for the model."""
        if not text.startswith("/"):
            return None
        name, _, args = text.strip().partition(" ")
        command = self._commands.get(name.lower())
        if command is None:
            return None
        return command, CommandCall(command.name, args.strip(), session_key)

    async def _help(self, call: CommandCall) -> str:
        rows = {STOP_COMMAND: "stops what this session is doing"}
        rows |= {command.name: command.summary for command in self._commands.values()}
        return "\n".join(f"{name}: {summary}" for name, summary in sorted(rows.items()))
