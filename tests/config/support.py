"""A configuration in a temporary state directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from claw_engine.config.load import ConfigStore
from claw_engine.paths import StateDir
from tests.support.fakes import fake_world


class Config:
    """Writes files and makes stores on them, as a start of the engine would."""

    def __init__(self, root: Path) -> None:
        self.state = StateDir(root)
        self.world = fake_world()

    def write(self, text: str, name: str = "openclaw.json") -> Path:
        path = self.state.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def store(self, env: Mapping[str, str] | None = None) -> ConfigStore:
        return ConfigStore(self.world, self.state, env or {})
