"""The programs of a run: both real OpenClaws, our gateway and console, one scripted model.

Each has a HOME of its own under the work folder, a port of its own, and speaks on loopback only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.interop.config import write_config
from bench.interop.peer import TOKEN, free_port
from bench.interop.provider import Provider
from bench.peers.screen import Screen, program

ROOT = Path(__file__).parents[2]
START_S = 400.0


@dataclass(frozen=True, slots=True)
class Peer:
    """An installed OpenClaw and its node."""

    package: Path
    node: Path
    protocol: int

    def read(self) -> str:
        return str(json.loads((self.package / "package.json").read_text())["version"])

    def command(self, *more: str) -> list[str]:
        return [str(self.node), str(self.package / "openclaw.mjs"), *more]

    def env(self, home: Path, cache: Path) -> dict[str, str]:
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        return {
            "PATH": f"{self.node.parent}:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "OPENCLAW_STATE_DIR": str(home / ".openclaw"),
            "OPENCLAW_SKIP_CHANNELS": "1",
            "OPENCLAW_SKIP_BROWSER_CONTROL_SERVER": "1",
            "OPENCLAW_DISABLE_BONJOUR": "1",
            "NODE_COMPILE_CACHE": str(cache),
        }


class Gateway:
    """A gateway's process that can be stopped and started again on the same port."""

    def __init__(
        self, argv: list[str], env: dict[str, str], home: Path, port: int, ready: str
    ) -> None:
        self._argv, self._env, self._home, self._ready = argv, env, home, ready
        self.port = port
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        """Up and ready. Raises TimeoutError."""
        await self._stack.enter_async_context(
            program(self._argv, self._env, self._home, self._home / "gateway.out")
        )
        async with asyncio.timeout(START_S):
            # Another program's port tells nobody when it opens.
            while not await asyncio.to_thread(  # noqa: ASYNC110
                _answers, f"http://127.0.0.1:{self.port}{self._ready}"
            ):
                await asyncio.sleep(1)

    async def stop(self) -> None:
        """SIGTERM."""
        await self._stack.aclose()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=3):  # loopback
            return True
    except urllib.error.HTTPError as error:
        return error.code not in (502, 503)
    except OSError:
        return False


@contextlib.asynccontextmanager
async def real_gateway(
    peer: Peer, home: Path, provider: Provider, cache: Path
) -> AsyncIterator[Gateway]:
    port = free_port()
    write_config(home / ".openclaw", provider.base_url, port, home)
    argv = ["nice", "-n", "5", *peer.command("gateway", "run", "--port", str(port))]
    gateway = Gateway(argv, peer.env(home, cache), home, port, "/")
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


def our_env(home: Path) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(home),
        "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)),
    }


@contextlib.asynccontextmanager
async def our_gateway(
    home: Path, provider: Provider, settings: Mapping[str, object] | None = None
) -> AsyncIterator[Gateway]:
    """`settings` go into the configuration's `gateway`."""
    port = free_port()
    write_config(home / ".openclaw", provider.base_url, port, home)
    path = home / ".openclaw" / "openclaw.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "gateway": {**config["gateway"], **(settings or {})}}))
    (home / "workspace").mkdir(exist_ok=True)
    (home / "workspace" / "AGENTS.md").write_text("# About this place\nA whale lives here.\n")
    argv = [sys.executable, "-m", "claw_engine.cli", "gateway", "run",
            "--state-dir", str(home / ".openclaw")]  # fmt: skip
    gateway = Gateway(argv, our_env(home), home, port, "/readyz")
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()


def our_console(name: str, url: str, home: Path, pictures: Path) -> Screen:
    argv = [sys.executable, "-m", "claw_tui", "--url", url, "--token", TOKEN, "--no-title"]
    return Screen(name, argv, our_env(home), pictures, cwd=home)


def their_terminal(peer: Peer, name: str, url: str, home: Path, cache: Path, to: Path) -> Screen:
    argv = peer.command("tui", "--url", url, "--token", TOKEN)
    return Screen(name, argv, peer.env(home, cache), to, cwd=home)


async def claw(home: Path, *words: str) -> str:
    """Our command line on the gateway of `home`; what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "claw_engine.cli", *words, env=our_env(home), cwd=home,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    return out.decode()
