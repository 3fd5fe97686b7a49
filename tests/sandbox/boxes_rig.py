"""Sandboxes to attack: a machine with secrets, an agent's workspace, a box of each backend."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from claw_engine.config.sections.box import BoxSettings
from claw_engine.sandbox.box import Box
from claw_engine.sandbox.boxes import Boxes
from claw_engine.sandbox.keeper import Keeper, Wishes
from claw_engine.sandbox.limits import Wanted
from claw_engine.shapes import read
from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World
from tests.sandbox import podman
from tests.sandbox.rig import Machine

BOX_BACKENDS = ("docker", "bwrap", "landlock")


class BoxRig:
    """One box; `sh` runs a command in it and says how that ended."""

    def __init__(self, machine: Machine, boxes: Boxes, box: Box) -> None:
        self.machine, self.boxes, self.box = machine, boxes, box

    def close(self) -> None:
        self.boxes.keeper.limits.close()
        if self.is_docker:
            asyncio.run(self.boxes.containers.remove(self.box.name, "podman"))

    def end_all(self) -> None:
        """What is left of the last command ends, as when the operator stops it."""
        if self.is_docker:
            wrapped = self.boxes.wrap(
                self.box, ("true",), self.box.workspace, {"CLAW_RUN_ID": "test"}, tty=False
            )
            mark = wrapped.stop[-1].partition("CLAW_BOX_ID=")[2].partition("'")[0]
            killer = (*wrapped.stop[:-1], wrapped.stop[-1].replace(mark, ""))
            subprocess.run(killer, env=dict(wrapped.env), capture_output=True, check=False)

            async def again() -> None:
                await self.boxes.ready(self.box)

            asyncio.run(again())

    @property
    def is_docker(self) -> bool:
        return self.box.backend == "docker"

    def python(self, script: str, *args: object) -> str:
        """What a Python program prints; only where there is one: on this machine."""
        words = " ".join(f"'{arg}'" for arg in args)
        return self.sh(f"{sys.executable} -I - {words} <<'E'\n{script}\nE").stdout

    def sh(self, command: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
        shell = "/bin/sh"
        wrapped = self.boxes.wrap(
            self.box, (shell, "-c", command), self.box.workspace,
            {"PATH": "/usr/bin:/bin", "CLAW_RUN_ID": "test"}, tty=False,
        )  # fmt: skip
        return subprocess.run(
            wrapped.argv, env=dict(wrapped.env), capture_output=True, text=True, timeout=seconds,
            stdin=subprocess.DEVNULL, start_new_session=True, check=False,
            cwd=self.box.workspace,
        )  # fmt: skip


def world() -> World:
    return World(RealClock(), RealIds(), RealDisk(), RealSpawn())


def settings(backend: str, **more: Any) -> BoxSettings:
    docker = {"engine": "podman", "pidsLimit": 64, "memory": "128m", **more.pop("docker", {})}
    return read(BoxSettings, {"mode": "all", "backend": backend, "docker": docker, **more})


def box_rig(machine: Machine, backend: str, **more: Any) -> BoxRig:
    """A ready box. Skips, saying why, where the backend cannot run."""
    env = dict(machine.env)
    if backend == "docker":
        found = podman.engine()
        if isinstance(found, str):
            pytest.skip(f"no container engine: {found}")
        env |= found
    limits = Wanted(64, 256 << 20)
    keeper = Keeper(world(), machine.state, machine.env, Wishes("auto", limits=limits))
    boxes = Boxes(world(), machine.state, env, keeper)

    async def made() -> Box:
        box = await boxes.of(
            settings(backend, **more), session_key="agent:main:x", agent_id="main",
            workspace=machine.workspace,
        )  # fmt: skip
        if box.backend is None:
            pytest.skip(f"{backend} does not work here: {box.broken}")
        await boxes.ready(box)
        return box

    return BoxRig(machine, boxes, asyncio.run(made()))
