from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.support import Config


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(tmp_path)
