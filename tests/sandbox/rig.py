"""A machine for attacks: a state directory with secrets, a home, a workspace, and backends.

Everything is real: real files, real sockets, real confined processes.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from claw_engine.sandbox.base import Scope
from claw_engine.sandbox.keeper import ConfinementBroken, Keeper, Wishes
from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World

BACKENDS = ("bwrap", "landlock")
GOT = "GOT"
"""What an attack prints when it got through."""


@dataclass
class Machine:
    """Paths of one test; `env` is the engine's environment."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    sockets: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.root / "data" / "claw"
        self.workspace = self.state / "workspace"
        self.home = self.root / "home"
        self.runtime = self.root / "runtime"
        for folder in (self.workspace, self.home, self.runtime):
            folder.mkdir(parents=True)
        (self.state / "door.key").write_text(f"{GOT} the key")
        (self.state / "exec-approvals.json").write_text("{}")
        (self.home / ".profile").write_text("# mine\n")
        (self.home / ".config").mkdir()
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id_ed25519").write_text(f"{GOT} a private key")
        (self.home / "bin").mkdir()
        (self.home / "projects").mkdir()
        self.env |= {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TMUX_TMPDIR": str(self.root),
        }

    def listen(self, path: Path) -> Path:
        """A server's socket; a client that connects has got through."""
        path.parent.mkdir(parents=True, exist_ok=True)
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen(8)
        self.sockets.append(server)
        return path

    def close(self) -> None:
        for server in self.sockets:
            server.close()

    def keeper(self, backend: str, **wishes: object) -> Keeper:
        """A checked keeper. Skips the test, saying why, when the backend does not work here."""
        world = World(RealClock(), RealIds(), RealDisk(), RealSpawn())
        wish = Wishes(backend, **wishes)  # type: ignore[arg-type]  # a test's free choice

        async def made() -> Keeper:
            keeper = Keeper(world, self.state, self.env, wish)
            await keeper.check()
            return keeper

        keeper = asyncio.run(made())
        try:
            keeper.demand()
        except ConfinementBroken as broken:
            pytest.skip(broken.title)
        return keeper

    def attack(
        self,
        keeper: Keeper,
        script: str,
        *args: object,
        scope: Scope = Scope.MACHINE,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run a Python script confined, as an allowed command that knows every path."""
        argv = (sys.executable, "-I", "-c", script, *(str(arg) for arg in args))
        return self.run(keeper, argv, scope=scope, env=env).stdout

    def run(
        self,
        keeper: Keeper,
        argv: tuple[str, ...],
        *,
        scope: Scope = Scope.MACHINE,
        env: Mapping[str, str] | None = None,
        change: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda argv: argv,
    ) -> subprocess.CompletedProcess[str]:
        plan = keeper.plan(
            argv, str(self.workspace), env or self.env, str(self.workspace), scope=scope
        )
        wrapped = keeper.wrap(plan)
        return subprocess.run(
            change(wrapped.argv), env=dict(wrapped.env), cwd=self.workspace, capture_output=True,
            text=True, timeout=60, start_new_session=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip


def is_root() -> bool:
    return os.geteuid() == 0
