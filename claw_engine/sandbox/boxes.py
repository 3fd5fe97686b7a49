"""The boxes of one engine: which backend carries one, making it ready, and a command in it.

Fails closed: a session that belongs in a box runs nothing anywhere else when no backend works.
Knows no tool and no session; who asks says what the session's settings and keys are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from claw_engine.errors import ClawError
from claw_engine.sandbox.base import Probe, Scope, Wrapped
from claw_engine.sandbox.box import Backend, Box, WorkspaceAccess, box_of
from claw_engine.sandbox.keeper import ConfinementBroken, Keeper
from claw_engine.world import World

if TYPE_CHECKING:
    from claw_engine.config.sections.box import BoxSettings
    from claw_engine.sandbox.containers import Containers

log = logging.getLogger("claw.sandbox")

GOOD_S, BAD_S = 600.0, 30.0
"""How long the answer of a container program counts; a failure forgets it."""

SEEDS = (
    "AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md",
    "MEMORY.md",
)  # fmt: skip
"""Files of the agent's workspace that a box's own workspace begins with."""

_MAX_SEED = 1 << 20


class BoxBroken(ClawError):
    """No backend can carry the box, or this one cannot be made."""

    retryable = True


class Boxes:
    """Loop thread only."""

    def __init__(
        self, world: World, state_root: Path, env: Mapping[str, str], keeper: Keeper
    ) -> None:
        self._world = world
        self._state = os.path.realpath(state_root)
        self.keeper = keeper
        self._root, self._env = state_root, env
        self._answers: dict[tuple[str, str], tuple[float, Probe]] = {}

    @cached_property
    def containers(self) -> Containers:
        """The containers; most engines never have one."""
        from claw_engine.sandbox.containers import Containers  # not at every start

        return Containers(self._world, self._root, self._env)

    async def of(
        self, settings: BoxSettings, *, session_key: str, agent_id: str, workspace: Path
    ) -> Box:
        """The box of a session that belongs in one, with a backend or the reason why none."""
        box = box_of(
            settings, session_key=session_key, agent_id=agent_id,
            agent_workspace=os.path.realpath(workspace), state_root=self._state,
        )  # fmt: skip
        backend, reason = await self._backend(settings)
        return replace(box, backend=backend, broken="" if backend else reason)

    async def _backend(self, settings: BoxSettings) -> tuple[Backend | None, str]:
        auto = settings.backend == "auto"
        names = tuple(Backend) if auto else (Backend(settings.backend),)
        reasons = []
        for name in names:
            probe = await self.probe(name, settings)
            if probe.available:
                return name, ""
            reasons.append(f"{name.value}: {probe.reason}")
        return None, "; ".join(reasons)

    async def probe(self, name: Backend, settings: BoxSettings) -> Probe:
        """Whether a backend can carry boxes of these settings."""
        if name is not Backend.DOCKER:
            return await self.keeper.named(name.value)
        wanted = (settings.docker.engine, settings.docker.image)
        now = self._world.clock.monotonic()
        at, probe = self._answers.get(wanted, (0.0, None))
        if probe is None or now - at > (GOOD_S if probe.available else BAD_S):
            probe = await self.containers.probe(*wanted)
            self._answers[wanted] = (self._world.clock.monotonic(), probe)
        return probe

    async def prepare(self, box: Box) -> None:
        """Have its workspace there. Raises BoxBroken."""
        if box.access is WorkspaceAccess.WRITE:
            return
        try:
            await self._world.disk.run(_seed, box)
        except OSError as error:
            raise BoxBroken(
                f"The sandbox's workspace {box.workspace} cannot be made: {error.strerror}."
            ) from error

    async def ready(self, box: Box) -> None:
        """Have everything there that a command in it needs. Raises BoxBroken."""
        if box.backend is None:
            raise BoxBroken(
                f"This session works in a sandbox, and none can be had here ({box.broken}).",
                hint="Mend one (claw doctor), or change agents.defaults.sandbox.",
            )
        await self.prepare(box)
        if box.backend is not Backend.DOCKER:
            if not (await self.keeper.named(box.backend.value)).available:
                raise BoxBroken(f"{box.backend.value} no longer works here.")
            return
        try:
            await self.containers.ready(box)
        except (ClawError, OSError) as error:
            self._answers.clear()
            title = error.title if isinstance(error, ClawError) else f"{error}"
            raise BoxBroken(f"The sandbox cannot be used: {title}") from error

    def wrap(
        self, box: Box, argv: Sequence[str], cwd: str, env: Mapping[str, str], *, tty: bool
    ) -> Wrapped:
        """A command in a box that is ready; `cwd` is of this machine. Blocking.

        Raises BoxBroken for a directory that the box does not see.
        """
        inside = box.inside(cwd)
        if inside is None:
            raise BoxBroken(f"{cwd} is not in the sandbox: its workspace is {box.workdir}.")
        if box.backend is Backend.DOCKER:
            return self.containers.wrap(box, argv, env, inside, tty=tty)
        assert box.backend is not None
        shown = (box.agent_workspace,) if box.access is WorkspaceAccess.READ else ()
        own_tmp = box.backend is Backend.BWRAP
        more = {"HOME": box.workspace, "TMPDIR": "/tmp" if own_tmp else f"{box.workspace}/.tmp"}
        plan = self.keeper.plan(
            argv, cwd, {**env, **more}, box.workspace, scope=Scope.BOX, shown=shown,
            network=box.settings.docker.network != "none",
        )  # fmt: skip
        try:
            return self.keeper.wrap(plan, box.backend.value)
        except ConfinementBroken as broken:
            raise BoxBroken(broken.title) from broken

    async def tight(self, box: Box) -> bool:
        """Whether nothing in the box can get at something that acts for it outside."""
        if box.backend is None:
            return False
        if box.backend is Backend.DOCKER:
            return True
        network = box.settings.docker.network != "none"
        name = box.backend.value
        return await asyncio.to_thread(self.keeper.tight, name, network=network)


def _seed(box: Box) -> None:
    own = Path(box.workspace)
    own.mkdir(parents=True, exist_ok=True)
    if box.backend is Backend.LANDLOCK:
        (own / ".tmp").mkdir(exist_ok=True)
    for name in SEEDS:
        data = _plain(Path(box.agent_workspace, name))
        if data is None:
            continue
        # What lies in the box was written by commands: never through a link of theirs.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            contextlib.suppress(FileExistsError),
            os.fdopen(os.open(own / name, flags, 0o644), "wb") as file,
        ):
            file.write(data)


def _plain(path: Path) -> bytes | None:
    """The content of an ordinary file with one name, which commands may have made; else None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        facts = os.fstat(fd)
        plain = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1 and facts.st_size <= _MAX_SEED
        return file.read(_MAX_SEED) if plain else None
