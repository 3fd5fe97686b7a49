"""Settings as a file would give them, for tests of the policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from claw_engine.config.load import ConfigStore
from claw_engine.config.settings import Settings
from claw_engine.paths import StateDir
from tests.support.fakes import fake_world


def settings_of(config: Mapping[str, object]) -> Settings:
    """The settings of a configuration that must be free of errors."""
    with TemporaryDirectory() as folder:
        state = StateDir(Path(folder))
        state.config.write_text(json.dumps(config))
        loaded = ConfigStore(fake_world(), state, {}).load()
        assert not [p for p in loaded.problems if p.fatal], loaded.problems
        return loaded.settings
