"""Short paths: a screen of 80 columns wraps pytest's own, which differ from run to run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="c", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
