"""The life of containers: made when first needed, made anew when their settings changed, pruned.

Whatever the registry says, the container program is asked what is there. Knows no tool.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.paths import StateDir
from claw_engine.sandbox import docker
from claw_engine.sandbox.base import Probe, Wrapped
from claw_engine.sandbox.box import Box
from claw_engine.sandbox.container_cli import ContainerCli, ContainerFailed, find_program
from claw_engine.sandbox.registry import Entry, Registry, stale
from claw_engine.world import World

log = logging.getLogger("claw.sandbox")

MARK = "CLAW_BOX_ID"
"""Variable that every command in a container carries, so that it can be found in there."""

PROBE_S = 10.0
STOP_S = 10
PRUNE_EVERY_S = 300.0
_STATE = "{{.State.Running}} {{index .Config.Labels %s}}"
_STOP = 'timeout "$1" "$2" exec "$3" /bin/sh -c "$4" || "$2" rm -f "$3"'
"""A container too full to run the killer is thrown away; the next command makes it anew."""


class Seen(Struct, frozen=True):
    """A container as the program tells it."""

    running: bool
    digest: str


class Containers:
    """Loop thread only. `env` is the engine's environment."""

    def __init__(self, world: World, state_root: Path, env: Mapping[str, str]) -> None:
        self._world = world
        self._state = str(state_root)
        self._env = env
        self.registry = Registry(world.disk, StateDir(state_root).containers_json)
        self._chosen: dict[str, str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._met: set[str] = set()
        self._used: dict[str, int] = {}
        self._pruned = float("-inf")

    def cli(self, engine: str) -> ContainerCli | None:
        """The program for `sandbox.docker.engine`; None when it is not installed."""
        program = find_program(self._chosen.get(engine, engine))
        return ContainerCli(self._world, program, self._env) if program else None

    async def probe(self, engine: str, image: str) -> Probe:
        """Whether the program is there, its service answers and the image exists.

        With `auto` the first of docker and podman that does is used from then on.
        """
        failed = Probe(False, "")
        for name in ("docker", "podman") if engine == "auto" else (engine,):
            probe = await self._probe(name, image)
            if probe.available:
                self._chosen[engine] = name
                return probe
            failed = Probe(False, f"{failed.reason}; {probe.reason}".removeprefix("; "))
        return failed

    async def _probe(self, name: str, image: str) -> Probe:
        cli = await asyncio.to_thread(self.cli, name)
        if cli is None:
            return Probe(False, f"{name} is not installed")
        try:
            await cli.done(["ps", "-q", "--filter", f"label={docker.LABEL}=1"], PROBE_S)
            if (await cli.ask(["image", "inspect", image], PROBE_S)).code != 0:
                return Probe(False, f"{name} has no image {image}")
        except ContainerFailed as failed:
            return Probe(False, failed.title.rstrip("."))
        return Probe(True, f"{name} has {image}")

    async def ready(self, box: Box) -> None:
        """Have the box's container run. Raises ContainerFailed, DockerRefused, OSError."""
        lock = self._locks.setdefault(box.name, asyncio.Lock())
        async with lock:
            await self._ready(box, self._cli(box))
        now = self._world.clock.monotonic()
        if now - self._pruned > PRUNE_EVERY_S:
            self._pruned = now
            prune = box.settings.prune
            await self.prune(prune.idle_hours, prune.max_age_days, spare=box.name)

    async def _ready(self, box: Box, cli: ContainerCli) -> None:
        timeout, wanted = float(box.settings.docker.timeout_sec), docker.digest(box)
        now = self._world.clock.now_ms()
        seen = await self._look(cli, box.name, timeout)
        if seen is not None and seen.digest != wanted and not self._used.get(box.name):
            log.info("sandbox container %s: its settings changed, made anew", box.name)
            await self._remove(cli, box.name, timeout)
            seen = None
        entry = (await self._world.disk.run(self.registry.read)).get(box.name)
        if seen is None:
            await cli.done(docker.create(box, self._state, now, self._user(cli)), timeout)
            await cli.done(["start", box.name], timeout)
            await self._set_up(box, cli, timeout)
            entry = None
        elif not seen.running:
            await cli.done(["start", box.name], timeout)
        elif box.name not in self._met:
            # What an engine that died left running there belongs to nobody.
            script = docker.killer(f"{MARK}=")
            await cli.ask(["exec", box.name, "/bin/sh", "-c", script], timeout)
        self._met.add(box.name)
        image = box.settings.docker.image
        entry = entry or Entry(box.name, box.key, image, now, now, wanted, {"engine": cli.name})
        await self._world.disk.run(self.registry.put, replace(entry, used_ms=now))

    async def _set_up(self, box: Box, cli: ContainerCli, timeout: float) -> None:
        command = box.settings.docker.setup_command
        if not command:
            return
        argv = ("/bin/sh", "-lc", command)
        try:
            await cli.done(docker.execute(box.name, argv, {}, box.workdir), timeout)
        except ContainerFailed:
            await self._remove(cli, box.name, timeout)
            raise

    def wrap(
        self, box: Box, argv: Sequence[str], env: Mapping[str, str], workdir: str, *, tty: bool
    ) -> Wrapped:
        """A command in the box's container, which must be ready."""
        cli, mark = self._cli(box), self._world.ids.hex(16)
        inside = docker.execute(box.name, argv, {**env, MARK: mark}, workdir, tty=tty)
        script = docker.killer(f"{MARK}={mark}")
        stop = ("/bin/sh", "-c", _STOP, "stop", str(STOP_S), cli.program, box.name, script)
        marks = {name: value for name, value in env.items() if name.startswith("CLAW_")}
        client = {**cli.env, **marks}  # by which its process is known as the run's
        return Wrapped((cli.program, *inside), client, monitor=True, stop=stop)

    def hold(self, name: str) -> Callable[[], None]:
        """Keep a container from being made anew or pruned until the answer is called, once."""
        self._used[name] = self._used.get(name, 0) + 1

        def let_go() -> None:
            self._used[name] -= 1

        return let_go

    async def rows(self) -> Sequence[Entry]:
        """What the registry has, newest use first."""
        entries = await self._world.disk.run(self.registry.read)
        return sorted(entries.values(), key=lambda entry: -entry.used_ms)

    async def running(self, engine: str, name: str) -> bool | None:
        """None = there is none, or nobody to ask."""
        cli = self.cli(engine)
        try:
            seen = await self._look(cli, name, PROBE_S) if cli is not None else None
        except ContainerFailed:
            return None
        return seen.running if seen is not None else None

    async def remove(self, name: str, engine: str = "auto") -> None:
        """Throw it away, also what runs in it. Raises ContainerFailed."""
        cli = self.cli(engine)
        if cli is None:
            raise ContainerFailed("There is neither docker nor podman here.")
        async with self._locks.setdefault(name, asyncio.Lock()):
            await self._remove(cli, name, PROBE_S * 3)

    async def prune(self, idle_hours: int, max_age_days: int, spare: str = "") -> Sequence[str]:
        """Remove what nobody used for long; names of those removed."""
        now, gone = self._world.clock.now_ms(), []
        try:
            old = stale(await self.rows(), now, idle_hours, max_age_days)
        except OSError as error:
            log.warning("sandbox containers are not pruned: %s", error)
            return []
        for entry in old:
            if entry.name == spare or self._used.get(entry.name):
                continue
            try:
                await self.remove(entry.name, entry.engine)
            except (ContainerFailed, OSError) as error:
                log.warning("sandbox container %s was not pruned: %s", entry.name, error)
                continue
            gone.append(entry.name)
            log.info("sandbox container %s pruned: not used for long", entry.name)
        return gone

    # -- inside ----------------------------------------------------------------------------------

    def _cli(self, box: Box) -> ContainerCli:
        cli = self.cli(box.settings.docker.engine)
        if cli is None:
            raise ContainerFailed(f"{box.settings.docker.engine} is no longer installed.")
        return cli

    def _user(self, cli: ContainerCli) -> str:
        """docker's root is this machine's, and without capabilities it could not write ours."""
        uid = os.geteuid()
        return f"{uid}:{os.getegid()}" if uid and cli.name == "docker" else ""

    async def _look(self, cli: ContainerCli, name: str, timeout: float) -> Seen | None:
        form = _STATE % f'"{docker.HASH_LABEL}"'
        answer = await cli.ask(["container", "inspect", "--format", form, name], timeout)
        if answer.code != 0:
            return None
        running, _, digest = answer.text.strip().partition(" ")
        return Seen(running == "true", digest)

    async def _remove(self, cli: ContainerCli, name: str, timeout: float) -> None:
        if await self._look(cli, name, timeout) is not None:
            await cli.done(["rm", "-f", name], timeout)
        self._met.discard(name)
        await self._world.disk.run(self.registry.drop, name)
