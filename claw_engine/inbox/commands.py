"""Slash commands and stop phrases: what the engine answers itself, without a model.

A registry; each room adds its own commands at wiring. Only senders that are authorised may use it;
the dispatcher checks that. Stop phrases: agent digest §1.13.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from msgspec import Struct

from claw_engine.inbox.model import InboundMessage
from claw_engine.inbox.rules import without_directive
from claw_engine.patterns import late

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
    word = text.strip().lower().rstrip(":").partition("@")[0]
    return word == STOP_COMMAND and len(text.split()) == 1


def is_stop_phrase(text: str) -> bool:
    """A bare word or short phrase of the list; means stop only while something runs."""
    if len(text) > 64:
        return False
    return " ".join(text.strip(_EDGES).lower().split()) in STOP_WORDS


class CommandCall(Struct, frozen=True):
    """A command as typed; `args` is the rest of the message."""

    name: str
    args: str
    message: InboundMessage

    @property
    def session_key(self) -> str:
        return self.message.session_key


class Forward(Struct, frozen=True):
    """The command did its part; `text` is a message for the model."""

    text: str


class Command(Struct, frozen=True):
    """`name` with its slash, `summary` one line for /help; `run` gives the answer's text, or what
    is to be forwarded. `aliases` are other names."""

    name: str
    summary: str
    run: Callable[[CommandCall], Awaitable[str | Forward]]
    aliases: tuple[str, ...] = ()


_CALL = late(r"^(/[a-z][a-z0-9_-]*)(?:@\S+)?(?=$|[\s:])[ \t]*:?\s*(.*)\Z", re.I | re.DOTALL)
"""`/name`, `/name@bot`, `/name: rest`, `/name rest`; the name stands on the first line."""


class Commands:
    """The commands there are. `/help` and `/stop` are always listed."""

    def __init__(self) -> None:
        self._commands: dict[str, Command] = {}
        self._names: dict[str, Command] = {}
        self.register(Command("/help", "lists these commands", self._help, ("/commands",)))

    def register(self, command: Command) -> None:
        """Add a command. Raises ValueError for a name that is taken or has no slash."""
        names = (command.name, *command.aliases)
        for name in names:
            if not name.startswith("/") or name in self._names or name == STOP_COMMAND:
                raise ValueError(f"command {name} cannot be registered")
        self._commands[command.name] = command
        self._names.update(dict.fromkeys(names, command))

    def all(self) -> tuple[Command, ...]:
        """Every command once."""
        return tuple(self._commands.values())

    def find(self, message: InboundMessage) -> tuple[Command, CommandCall] | None:
        """The command a message calls; None means the message is for the model."""
        found = _CALL.match(message.text.strip())
        command = self._names.get(found[1].lower()) if found is not None else None
        if found is None or command is None:
            return None
        if command.name == "/queue" and without_directive(message) is not message:
            return None  # options for the message that follows them
        return command, CommandCall(command.name, found[2].strip(), message)

    async def _help(self, call: CommandCall) -> str:
        rows = {STOP_COMMAND: "stops what this session is doing and empties its queue"}
        rows |= {command.name: command.summary for command in self._commands.values()}
        return "\n".join(f"{name}: {summary}" for name, summary in sorted(rows.items()))
