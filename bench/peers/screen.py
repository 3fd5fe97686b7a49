"""A program in a terminal of its own (tmux): type, wait for words, keep pictures as text."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

WAIT_S = 60.0
LOOK_S = 0.3


class NotSeen(Exception):
    """The words did not come in time; the text is the screen."""


class Screen:
    """`async with Screen(name, argv, env, folder) as screen:`; sizes in cells."""

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: Mapping[str, str],
        pictures: Path,
        *,
        size: tuple[int, int] = (110, 34),
        cwd: Path = Path("/"),
    ) -> None:
        self._name = name
        self._argv = argv
        self._env = env
        self._pictures = pictures
        self._size = size
        self._cwd = cwd

    async def __aenter__(self) -> Self:
        words = ["env", "-i", *(f"{k}={v}" for k, v in self._env.items()), *self._argv]
        width, height = self._size
        await self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-s", self._name, "-c", str(self._cwd),
            "-x", str(width), "-y", str(height), f"{shlex.join(words)}; echo ENDED $?; read x",
        )  # fmt: skip
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._tmux("kill-session", "-t", self._name)

    async def text(self) -> str:
        return await self._tmux("capture-pane", "-p", "-t", self._name)

    async def type(self, words: str) -> None:
        await self._tmux("send-keys", "-t", self._name, "-l", words)

    async def key(self, *names: str) -> None:
        """tmux's names of keys: Enter, Escape, C-c, F2."""
        await self._tmux("send-keys", "-t", self._name, *names)

    async def say(self, words: str) -> None:
        await self.type(words)
        await asyncio.sleep(0.5)
        await self.key("Enter")

    async def see(self, *words: str, seconds: float = WAIT_S, gone: str = "") -> str:
        """The screen once it shows all `words` and not `gone`. Raises NotSeen."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    shown = await self.text()
                    if all(w in shown for w in words) and not (gone and gone in shown):
                        return shown
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise NotSeen(f"{words} (without {gone!r}) not seen:\n{await self.text()}") from None

    async def picture(self, name: str) -> None:
        """Keep the screen as it is in `<pictures>/<name>.txt`."""
        lines = [line.rstrip() for line in (await self.text()).splitlines()]
        self._pictures.mkdir(parents=True, exist_ok=True)
        (self._pictures / f"{name}.txt").write_text("\n".join(lines).rstrip() + "\n")

    async def _tmux(self, *args: str) -> str:
        process = await asyncio.create_subprocess_exec(
            "tmux", "-L", "claw-peers", *args,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
        return out.decode(errors="replace")


@contextlib.asynccontextmanager
async def program(
    argv: list[str], env: Mapping[str, str], cwd: Path, log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process in a session of its own, ended by SIGTERM (SIGKILL after 30 s)."""
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *argv, env=dict(env), cwd=cwd, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
