"""Checks of exec's plain parameters, with texts that a model can act on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from claw_engine.sandbox.box import Box
from claw_engine.tools.base import ToolError


def passable(what: str, text: str) -> None:
    """Raises ToolError for text that no program can be given."""
    if "\0" in text:
        raise ToolError(f"exec: {what} contains a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(
            f"exec: {what} is not valid Unicode text (half a surrogate pair)."
        ) from None


def directory(workdir: object, workspace: Path, box: Box | None = None) -> str:
    """The directory on this machine; `workdir` may be a path as the sandbox sees it."""
    path = workspace
    if isinstance(workdir, str) and workdir.strip():
        passable("workdir", workdir)
        workdir = box.outside(workdir) if box is not None else workdir
        try:
            path = workspace / Path(workdir).expanduser()
        except RuntimeError:
            raise ToolError(f"exec: workdir {workdir}: there is no such user.") from None
    text = os.path.normpath(path)
    if not Path(text).is_dir():
        raise ToolError(
            f"exec: workdir {text} is not a directory. Leave workdir out to run in the workspace "
            f"({workspace})."
        )
    return text


def time_limit(args: Mapping[str, object], default: float) -> float | None:
    """Seconds; a call that asks for the background has no limit unless it names one."""
    given = args.get("timeout")
    if isinstance(given, (int, float)):
        return given
    if args.get("background") is True or "yieldMs" in args:
        return None
    return default
