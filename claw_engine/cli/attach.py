"""The blocking client of the state directory the command line means."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from claw_engine.client.state_choice import resolve, resolve_for_start, resolve_text
from claw_engine.client.sync import SyncClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


def state_dir(args: Namespace) -> Path:
    """For verbs that only ask. Raises ChoiceNeeded."""
    return resolve(args.state_dir, os.environ)


def state_dir_for_start(args: Namespace) -> Path:
    """For verbs that start an engine: asks on a terminal. Raises ChoiceNeeded, ChoiceFailed."""
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return resolve_for_start(
        args.state_dir, os.environ, _ask if terminal else None, lambda line: _say(line + "\n")
    )


def client(args: Namespace, *, patience_s: float = 30.0) -> SyncClient:
    """To be used as a context manager; waits `patience_s` for each answer. Raises ChoiceNeeded."""
    return SyncClient(resolve_text(args.state_dir, os.environ), timeout=patience_s)


def _ask(prompt: str) -> str:
    _say(prompt)
    line = sys.stdin.readline()
    return line if line else "q"


def _say(text: str) -> None:
    # stderr: stdout belongs to the verb's answer.
    sys.stderr.write(text)
    sys.stderr.flush()
