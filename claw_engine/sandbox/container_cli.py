"""The docker or podman command line: found in system directories, asked with a time limit.

Knows no container; what is asked is its caller's business.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.sandbox.base import system_program
from claw_engine.world import World

_KEPT_ENV = (
    "PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DOCKER_HOST",
    "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST",
    "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF", "TMPDIR", "LANG",
)  # fmt: skip

_MAX_ANSWER = 1 << 20


class ContainerFailed(ClawError):
    """The container program said no, or nothing at all; the title has its last words."""

    retryable = True


class Answer(Struct, frozen=True):
    code: int
    text: str

    @property
    def last_words(self) -> str:
        """The end of what it said, on one line."""
        return " ".join(self.text.split())[-300:]


def find_program(engine: str) -> str | None:
    """Its path, None when it is not installed; `auto` is docker first."""
    return system_program(*(("docker", "podman") if engine == "auto" else (engine,)))


class ContainerCli:
    """One container program. `env` is the engine's environment."""

    def __init__(self, world: World, program: str, env: Mapping[str, str]) -> None:
        self.program = program
        self.env = {name: env[name] for name in _KEPT_ENV if name in env}
        self._world = world

    @property
    def name(self) -> str:
        return self.program.rpartition("/")[2]

    async def ask(self, arguments: Sequence[str], timeout_s: float) -> Answer:
        """Run it. Raises ContainerFailed when it cannot be started or does not end in time."""
        try:
            process = await self._world.spawn.start(
                [self.program, *arguments], cwd="/", env=self.env
            )
        except OSError as error:
            raise ContainerFailed(f"{self.name} cannot be started: {error.strerror}.") from error
        said, code = bytearray(), None
        try:
            async with asyncio.timeout(timeout_s):
                while data := await process.read(1 << 16):
                    said = (said + data)[-_MAX_ANSWER:]
                code = await process.wait()
        except TimeoutError:
            raise ContainerFailed(
                f"{self.name} {arguments[0]} gave no answer within {timeout_s:g} s.",
                hint="See whether its service runs; sandbox.docker.timeoutSec is the limit.",
            ) from None
        finally:
            if code is None:
                process.signal_group(signal.SIGKILL)
            process.close_output()
        return Answer(code, said.decode(errors="replace"))

    async def done(self, arguments: Sequence[str], timeout_s: float) -> str:
        """What it said. Raises ContainerFailed unless it succeeded."""
        answer = await self.ask(arguments, timeout_s)
        if answer.code != 0:
            words = answer.last_words or f"exit code {answer.code}"
            raise ContainerFailed(f"{self.name} {arguments[0]} failed: {words}")
        return answer.text.strip()
