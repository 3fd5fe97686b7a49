"""What the client saw. Its own list is the truth that the state directory is held against."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

CONFIG: dict[str, object] = {
    "messages": {"queue": {"mode": "followup"}},
    "claw": {"resume": "never"},
}
"""One turn for one message, and nothing is taken up again: so each id can be counted."""

_TOKEN = re.compile(r"tok-[0-9]+-[0-9]+(?:-[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of ours: its id, session, text, and the tokens its commands would count."""

    id: str
    session: str
    text: str
    tokens: tuple[str, ...] = ()


@dataclass(slots=True)
class Truth:
    """Everything one client learned, across all lives of the engine on one directory."""

    counter: Path
    sent: dict[str, Sent] = field(default_factory=dict)
    acked: set[str] = field(default_factory=set)
    asked: dict[str, str] = field(default_factory=dict)  # approval id -> token
    allowed: set[str] = field(default_factory=set)  # tokens whose allow was sent
    told_end: dict[str, str] = field(default_factory=dict)  # run id -> status of run.ended
    problems: list[str] = field(default_factory=list)

    def note_asked(self, approval_id: str, command: str) -> None:
        """A request became visible. The same command asked for twice means a repeated run."""
        for token in tokens_in(command):
            if token in self.asked.values() and approval_id not in self.asked:
                self.problems.append(f"{token} was asked for twice: its run was repeated unmarked")
            self.asked[approval_id] = token


class Writer:
    """Makes messages: words, counted commands, parallel ones, long answers."""

    def __init__(self, seed: int, counter: Path) -> None:
        self._seed = seed
        self._counter = counter
        self._rng = random.Random(seed)
        self._made = 0

    def next(self, sessions: int = 3) -> Sent:
        self._made += 1
        name = f"tok-{self._seed}-{self._made}"
        session = f"s{self._rng.randrange(sessions)}"
        match self._rng.choices(("think", "run", "tools", "long"), (4, 4, 1, 1))[0]:
            case "think":
                return Sent(name, session, f"think: about {name}")
            case "long":
                return Sent(name, session, f"long: {self._rng.randrange(5, 60)} 400")
            case "run":
                return Sent(name, session, f"run: {self._command(name)}", (name,))
            case _:
                both = (f"{name}-1", f"{name}-2")
                text = " || ".join(map(self._command, both))
                return Sent(name, session, f"tools: {text}", both)

    def _command(self, token: str) -> str:
        return f"sh -c 'echo {token} >> {self._counter}'"


def configure(state: Path) -> None:
    """Write the configuration of the harnesses into a state directory."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    (state / "openclaw.json").write_text(json.dumps(CONFIG))


def tokens_in(text: str) -> list[str]:
    """The tokens a command or a file holds."""
    return _TOKEN.findall(text)
