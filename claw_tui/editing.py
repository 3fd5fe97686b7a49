"""The operator's own editor on a file of the workspace: the console gives the terminal away and
takes it back, and the loop goes on meanwhile (an engine may live on it)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from claw_engine.errors import ClawError
from claw_tui.store.requests import PartInfo
from claw_tui.terminal.driver import ClawDriver

if TYPE_CHECKING:
    from claw_tui.app import ClawApp

EDITORS = ("nano", "vim", "vi")
"""What is looked for when the environment names no editor."""
BYTES_PER_TOKEN = 4.0
"""For a part whose tokens are not known."""
GO_ON_SECONDS = (0.1, 0.5, 2.0)
"""When an editor that was stopped is let go on."""

Editor = Callable[["ClawApp", Path], Awaitable[None]]


class EditFailed(ClawError):
    """There is no file, no editor, or it said that it failed."""


def editor_command(env: Mapping[str, str]) -> list[str]:
    """The operator's editor with its arguments. Raises EditFailed."""
    for name in ("VISUAL", "EDITOR"):
        with contextlib.suppress(ValueError):
            words = shlex.split(env.get(name, ""))
            if words:
                return words
    found = next((name for name in EDITORS if shutil.which(name)), "")
    if not found:
        raise EditFailed("No editor was found.", hint="Set EDITOR to the one you want.")
    return [found]


async def in_terminal(app: ClawApp, path: Path) -> None:
    """Run the editor on `path` with the terminal to itself. Raises EditFailed."""
    command = [*editor_command(os.environ), str(path)]
    driver = app._driver
    if isinstance(driver, ClawDriver):
        await driver.end_input()
    app.away = True
    editor = _Editor(command)
    try:
        with editor.signals(), app.suspend(), app.batch_update():
            code = await editor.run()
    except SuspendNotSupported as error:
        raise EditFailed("This terminal cannot be handed to an editor.") from error
    finally:
        app.away = False
        app.keeper.disarm()  # nobody has seen what was painted meanwhile
    app.action_redraw()
    if code:
        raise EditFailed(f"{command[0]} ended with {code}.", hint="The file may be as it was.")


class _Editor:
    """The editor's process, which shares the terminal's keys with us while it runs."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._pid: int | None = None
        self._loop = asyncio.get_running_loop()

    async def run(self) -> int:
        try:
            process = await asyncio.create_subprocess_exec(*self._command)
        except OSError as error:
            raise EditFailed(
                f"{self._command[0]} cannot be started: {error.strerror}.",
                hint="EDITOR and VISUAL say which editor is used.",
            ) from error
        self._pid = process.pid
        try:
            return await process.wait()
        finally:
            self._pid = None

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """ctrl+c and ctrl+z reach us, too, when an editor leaves them to the terminal. Neither is
        for us: stopped, an engine in this process would stand still, and so would the editor,
        with no shell in front that could let it go on.

        Handlers, not SIG_IGN: the editor would inherit that.
        """
        wanted = {signal.SIGINT: lambda number, frame: None, signal.SIGTSTP: self._go_on}
        before = {number: signal.signal(number, act) for number, act in wanted.items()}
        try:
            yield
        finally:
            for number, act in before.items():
                signal.signal(number, act)

    def _go_on(self, number: int, frame: object) -> None:
        for wait in GO_ON_SECONDS:  # it may not have stopped yet
            self._loop.call_soon_threadsafe(self._loop.call_later, wait, self._continue)

    def _continue(self) -> None:
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGCONT)


async def edit_part(app: ClawApp, part: PartInfo, editor: Editor = in_terminal) -> str:
    """Edit the file of a part; a sentence on what the next run will show. Raises EditFailed."""
    path = Path(part.source)
    if not app.local:
        raise EditFailed("The files of this gateway are on another computer.",
                         hint=f"Edit {part.source} there.")  # fmt: skip
    if not path.is_absolute() or not await asyncio.to_thread(path.parent.is_dir):
        raise EditFailed(f"There is no folder for {part.source}.")
    before = await asyncio.to_thread(_read, path)
    await editor(app, path)
    after = await asyncio.to_thread(_read, path)
    return difference(part, before, after)


def difference(part: PartInfo, before: str, after: str) -> str:
    """What an edit does to the next run: tokens by what this part's bytes cost so far."""
    name = part.name or part.source
    if before == after:
        return f"{name} is as it was"
    chars = len(after) - len(before)
    if part.kind == "skill":
        return f"{name}: {chars:+,} characters; its name and description are in the next run"
    was = len(before.encode())
    if was > part.bytes:
        return f"{name}: {chars:+,} characters, of a file that is only sent in part"
    per_token = part.bytes / part.tokens if part.tokens and part.bytes else BYTES_PER_TOKEN
    tokens = round((len(after.encode()) - was) / per_token)
    return f"{name}: {chars:+,} characters, about {tokens:+,} tokens in the next run"


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise EditFailed(f"{path} cannot be read: {error.strerror}.") from error
