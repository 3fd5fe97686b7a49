"""What is no plain file is refused before it is opened: no start may hang on a pipe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from claw_engine.config.parse import MAX_BYTES
from claw_engine.config.problems import ConfigError
from tests.config.support import Config


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)


NOT_PLAIN = pytest.mark.parametrize(
    ("make", "why"),
    [
        (fifo, "not a regular file"),
        (folder, "not a regular file"),
        (device, "not a regular file"),
        (huge, "larger than 2 MiB"),
    ],
)


@NOT_PLAIN
def test_the_main_file(config: Config, make, why: str) -> None:  # type: ignore[no-untyped-def]
    make(config.state.config)
    with pytest.raises(ConfigError, match=f"openclaw.json: cannot be read: it is {why}"):
        config.store().load()


@NOT_PLAIN
def test_the_dotenv_file(config: Config, make, why: str) -> None:  # type: ignore[no-untyped-def]
    config.write("{}")
    make(config.state.root / ".env")
    problems = config.store().load().problems
    assert [why in p.sentence() and ".env" in p.sentence() for p in problems] == [True]


@NOT_PLAIN
def test_the_last_good_copy(config: Config, make, why: str) -> None:  # type: ignore[no-untyped-def]
    make(config.state.config_last_good)
    config.write("{")
    with pytest.raises(ConfigError, match="cannot be used"):
        config.store().load()
    config.write("{}")
    problems = config.store().load().problems
    assert [why in p.sentence() for p in problems] == [True]
