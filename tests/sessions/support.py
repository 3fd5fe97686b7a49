"""A state directory for session tests, with everything it publishes written down."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from claw_engine.events import Event, Notice
from claw_engine.messages import AssistantMessage, TextBlock, ToolResultMessage, UserMessage
from claw_engine.paths import StateDir
from claw_engine.sessions.index import SessionIndex
from claw_engine.sessions.store import Sessions
from claw_engine.world import RealDisk
from tests.support.fakes import FakeClock, fake_world

GOLDEN = Path(__file__).parents[1] / "golden" / "state"


@dataclass
class Box:
    """One state directory and the world around it."""

    root: Path
    disk: RealDisk = field(default_factory=RealDisk)
    clock: FakeClock = field(default_factory=FakeClock)
    told: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = fake_world(self.clock, self.disk)
        self.state = StateDir(self.root)
        self.folder = self.state.sessions_dir("main")
        self.folder.mkdir(parents=True, exist_ok=True)

    def golden(self) -> None:
        shutil.copytree(GOLDEN, self.root, dirs_exist_ok=True)

    def index(self) -> SessionIndex:
        return SessionIndex(self.world, self.state, self.told.append)

    def sessions(self) -> Sessions:
        return Sessions(self.world, self.state, self.told.append)

    def notices(self) -> list[Notice]:
        return [event for event in self.told if isinstance(event, Notice)]

    def store(self) -> dict[str, dict[str, object]]:
        value: dict[str, dict[str, object]] = json.loads(
            self.state.sessions_json("main").read_bytes()
        )
        return value


def user(text: str, **extra: object) -> UserMessage:
    return UserMessage((TextBlock(text),), 1, extra)


def assistant(text: str) -> AssistantMessage:
    return AssistantMessage((TextBlock(text),), "openai-completions", "fake", "fake-1", timestamp=2)


def result(text: str, call_id: str = "c1") -> ToolResultMessage:
    return ToolResultMessage(call_id, "exec", (TextBlock(text),), timestamp=3)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
