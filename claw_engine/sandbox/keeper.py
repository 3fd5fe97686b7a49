"""Keeps the confinement of one engine: which backend works, what a command gets, what stays open.

A backend counts as working only after it really ran a command that failed to read the state
directory. Knows no tool; whoever starts a command asks for a plan, then for the wrapped command.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from claw_engine.errors import ClawError
from claw_engine.sandbox.base import Plan, Probe, Route, RouteKind, Sandbox, Scope, Wrapped
from claw_engine.sandbox.bwrap import Bwrap, find_program
from claw_engine.sandbox.landlock import Landlock
from claw_engine.sandbox.limits import Limits, Wanted, limits
from claw_engine.sandbox.machine import TIED_TO_SOCKETS, Machine
from claw_engine.sandbox.none import Unconfined
from claw_engine.sandbox.rules import Place, effective, rules_for
from claw_engine.world import World

log = logging.getLogger("claw.sandbox")

BYPASS = "approvals can be bypassed by allowed commands"
"""What the operator is told while a route stays open; the route follows."""

PROBE_S = 10.0
"""Seconds a backend gets to start one command before it counts as broken."""

PROBE_TIMES = 3
"""Failures in a row after which it does."""

LOOK_AGAIN_S = 2.0
"""How long the status line may repeat which routes were open."""

_PROBE = 'if (: <"$0") 2>/dev/null; then exit 9; fi'
_PROBE_FILE = ".confinement-check"
_ENGINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120 - text


class ConfinementBroken(ClawError):
    """The configuration demands a confinement that does not work here."""


class Wishes(Struct, frozen=True):
    """By configuration (`tools.exec.confine…`). `network` is auto, keep or none."""

    backend: str = "auto"
    network: str = "auto"
    writable: tuple[str, ...] = ()
    reach: tuple[str, ...] = ()
    limits: Wanted = Wanted()


class Report(Struct, frozen=True):
    """What is known of one backend, for `claw doctor`."""

    name: str
    chosen: bool
    probe: Probe


class Keeper:
    """Use: `await check()`, then `plan` (blocking) and `wrap` for each command."""

    def __init__(
        self, world: World, state_root: Path, env: Mapping[str, str], wishes: Wishes | None = None
    ) -> None:
        self._world = world
        self._state = str(state_root)
        self._machine = Machine(env, os.geteuid())
        self._wishes = wishes or Wishes()
        self._backend: Sandbox = Unconfined()
        self._others: dict[str, Sandbox] = {}
        self.limits = Limits()
        self._probes: dict[str, Probe] = {}
        self._looked: tuple[float, tuple[Route, ...]] | None = None
        self._checked = asyncio.Event()
        self._checking: asyncio.Task[None] | None = None

    # -- choosing ------------------------------------------------------------------------------

    def configure(self, wishes: Wishes) -> None:
        """Other wishes: find out again what works. Commands wait for that."""
        if wishes != self._wishes:
            self._wishes = wishes
            self._checked.clear()
            self._checking = asyncio.create_task(self._choose(), name="sandbox check")

    async def check(self) -> None:
        """Find the backend to use, once; later calls return at once."""
        if self._checking is None:
            self._checking = asyncio.create_task(self._choose(), name="sandbox check")
        await asyncio.shield(self._checking)

    async def close(self) -> None:
        """Wait for a check that goes on (its child has a time limit): nothing runs on after us.

        What limited the commands is given back: they must have ended.
        """
        if self._checking is not None:
            await asyncio.wait([self._checking])
        await asyncio.to_thread(self.limits.close)

    async def _choose(self) -> None:
        wish = self._wishes.backend
        await asyncio.to_thread(self._prepare)
        if self.limits.wanted != self._wishes.limits:
            old, wanted = self.limits, self._wishes.limits
            self.limits = await asyncio.to_thread(limits, wanted)
            await asyncio.to_thread(old.close)
        names = ("bwrap", "landlock") if wish == "auto" else (wish,)
        self._backend = Unconfined()
        self._probes, self._others = {}, {}
        for name in names:
            if name == "none":
                continue
            backend, probe = await self._probe(name)
            self._probes[name] = probe
            if backend is not None:
                self._backend = backend
                break
        self._looked = None
        self._checked.set()
        log.info("confinement: %s %s", self._backend.name, self.warning or "no route open")

    async def reports(self) -> Sequence[Report]:
        """Every backend's state, those not needed so far included."""
        await self.check()
        for name in ("bwrap", "landlock"):
            if name not in self._probes:
                self._probes[name] = (await self._probe(name))[1]
        bare = Probe(True, "the command runs as the user", self._machine.routes())
        rows = {**self._probes, "none": bare}
        return [Report(name, name == self._backend.name, probe) for name, probe in rows.items()]

    async def named(self, name: str) -> Probe:
        """Whether this backend works; then `wrap` takes its name, whichever one is in use."""
        await self.check()
        if name not in self._probes or (
            self._probes[name].available and name not in {*self._others, self._backend.name}
        ):
            backend, self._probes[name] = await self._probe(name)
            if backend is not None:
                self._others[name] = backend
        return self._probes[name]

    async def _probe(self, name: str) -> tuple[Sandbox | None, Probe]:
        found = await asyncio.to_thread(_find, name)
        if isinstance(found, str):
            return None, Probe(False, found)
        failure = ""
        for _ in range(PROBE_TIMES):  # what was hidden may have gone meanwhile
            try:
                failure = await self._try(found)
            except (OSError, TimeoutError) as error:
                failure = str(error) or "no answer"
            if not failure:
                break
        if failure:
            return None, Probe(False, failure)
        left = await asyncio.to_thread(self._left_open, found)
        version = f"ABI {found.abi}" if isinstance(found, Landlock) else "works"
        return found, Probe(True, version, left)

    async def _try(self, backend: Sandbox) -> str:
        """Run one command in it that tries to read the state directory; "" = it could not."""
        target = f"{self._state}/{_PROBE_FILE}"
        with contextlib.suppress(OSError):  # no such directory: then nothing can be read either
            await self._world.disk.run(Path(target).touch, 0o600)
        argv = ("/bin/sh", "-c", _PROBE, target)
        plan = await asyncio.to_thread(
            self.plan, argv, "/", {"PATH": "/usr/bin:/bin"}, f"{self._state}/workspace"
        )
        wrapped = backend.wrap(plan)
        async with asyncio.timeout(PROBE_S):
            process = await self._world.spawn.start(wrapped.argv, cwd="/", env=wrapped.env)
            try:
                said = b""
                while data := await process.read(4096):
                    said = (said + data)[:2000]
                code = await process.wait()
            except BaseException:
                process.signal_group(signal.SIGKILL)
                raise
            finally:
                process.close_output()
                with contextlib.suppress(OSError):
                    await self._world.disk.run(os.unlink, target)
        if code == 0:
            return ""
        if code == 9:
            return "the state directory stayed readable"
        return " ".join(said.decode(errors="replace").split())[:200] or f"exit code {code}"

    def _prepare(self) -> None:
        """A directory that does not exist yet cannot be hidden: make the one tmux would make."""
        base = self._machine.env.get("TMUX_TMPDIR") or "/tmp"
        with contextlib.suppress(OSError):
            os.mkdir(f"{base}/tmux-{os.geteuid()}", 0o700)  # noqa: PTH102 - text paths throughout

    # -- for each command ----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The backend in use."""
        return self._backend.name

    @property
    def confines(self) -> bool:
        return not isinstance(self._backend, Unconfined)

    def tight(self, name: str = "", *, network: bool | None = None) -> bool:
        """Whether a command confined to its workspace has no route out. Blocking."""
        backend = self._by_name(name)
        network = self._wishes.network == "keep" if network is None else network
        return not self._wishes.reach and all(
            backend.closes(route, network=network) for route in self._machine.routes()
        )

    def demand(self) -> None:
        """Raises ConfinementBroken when the configured backend does not work: nothing may run."""
        wish = self._wishes.backend
        if wish not in ("auto", "none", self._backend.name):
            probe = self._probes.get(wish)
            raise ConfinementBroken(
                f"Commands must be confined by {wish}, which does not work here"
                f"{f' ({probe.reason})' if probe else ''}.",
                hint="Repair it, or change tools.exec.confine.",
            )

    def plan(
        self,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        workspace: str,
        *,
        scope: Scope = Scope.MACHINE,
        workspace_closed: bool = False,
        shown: tuple[str, ...] = (),
        network: bool | None = None,
    ) -> Plan:
        """What a command may reach, by what is on this machine now. Blocking, a few ms.

        `shown` and `network` are for a box: what it may read, and whether it has a network.
        """
        machine, wishes = self._machine, self._wishes
        boxed, apart = scope is Scope.BOX, scope is not Scope.MACHINE
        hide_ssh = "ssh" not in wishes.reach and machine.sshd_listens()
        agent = "" if hide_ssh or apart else env.get("SSH_AUTH_SOCK", "")
        opened = () if boxed else (*wishes.reach, agent)
        reach = tuple(path for path in opened if path.startswith("/"))
        place = Place(
            workspace=workspace,
            state_root=self._state,
            homes=machine.homes(),
            code=(sys.prefix, sys.base_prefix, _ENGINE),
            path=tuple(p for p in machine.env.get("PATH", "").split(":") if p.startswith("/")),
            writable=() if boxed else tuple(os.path.expanduser(path) for path in wishes.writable),  # noqa: PTH111
            reach=reach,
            shown=shown,
            workspace_closed=workspace_closed,
            hide_ssh=hide_ssh or apart,
            runtime_dirs=machine.runtime_dirs(),
        )
        rules = rules_for(place, scope)
        if network is None:
            network = wishes.network == "keep" or (wishes.network == "auto" and not apart)
        return Plan(
            tuple(argv), cwd, self._own_env(env, place.hide_ssh), rules,
            self._sockets(os.path.realpath(workspace), rules, reach), network, os.geteuid(),
        )  # fmt: skip

    def wrap(self, plan: Plan, name: str = "") -> Wrapped:
        """The command as the chosen backend runs it, or the one of this name (see `named`).

        Raises ConfinementBroken when that one is not known to work.
        """
        backend = self._by_name(name)
        wrapped = backend.wrap(plan)
        if isinstance(backend, Unconfined):
            return wrapped
        return replace(wrapped, argv=self.limits.around(wrapped.argv))

    def _by_name(self, name: str) -> Sandbox:
        if name in ("", self._backend.name):
            return self._backend
        if name not in self._others:
            raise ConfinementBroken(f"{name} is not known to work here.")
        return self._others[name]

    def _own_env(self, env: Mapping[str, str], hide_ssh: bool) -> dict[str, str]:
        if not self.confines and self._checked.is_set() and not self._others:
            return dict(env)
        gone = TIED_TO_SOCKETS | ({"SSH_AUTH_SOCK"} if hide_ssh else set())
        return {name: value for name, value in env.items() if name not in gone}

    def _sockets(
        self, workspace: str, rules: Mapping[str, object], reach: Sequence[str]
    ) -> frozenset[str]:
        """Sockets and directories of sockets to hide: all that listen outside the workspace."""
        machine = self._machine
        found = {path for _, path in (*machine.folders(), *machine.known_sockets())}
        found |= {path for path in machine.listening() if path.startswith("/")}
        opened = {os.path.realpath(path) for path in reach}
        hidden: set[str] = set()
        for path in found:
            real = os.path.realpath(path)
            if real in opened or real.startswith(f"{workspace}/") or not os.path.exists(real):  # noqa: PTH110 - text paths throughout
                continue
            if any(path.startswith(f"{real}/") for path in opened):
                continue  # its directory cannot be hidden either
            if not any(real.startswith(f"{kept}/") for kept in rules if kept.startswith("/run/")):
                hidden.add(real)
        return frozenset(hidden)

    # -- the truth about it --------------------------------------------------------------------

    @property
    def warning(self) -> str | None:
        """The sentence for the status line; None when no route is known to be open."""
        if not self._checked.is_set():
            return f"{BYPASS}: confinement is not checked yet"
        if not self.confines:
            return f"{BYPASS}: they are not confined"
        now = self._world.clock.monotonic()
        if self._looked is None or now - self._looked[0] > LOOK_AGAIN_S:
            self._looked = (now, self._left_open(self._backend))
        left = self._looked[1]
        if not left:
            return None
        names = [route.what for route in left]
        said = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return f"{BYPASS}: {said} {'is' if len(names) == 1 else 'are'} reachable"

    def _left_open(self, backend: Sandbox) -> tuple[Route, ...]:
        network = self._wishes.network != "none"
        reach = self._wishes.reach
        opened = {os.path.realpath(path) for path in reach if path.startswith("/")}
        left = [
            route
            for route in self._machine.routes()
            if not backend.closes(route, network=network)
            or os.path.realpath(route.path) in opened
            or (route.path == "ssh" and "ssh" in reach)
        ]
        left += [Route(RouteKind.FILE, what, path) for what, path in self._opened_files()]
        return tuple(left)

    def _opened_files(self) -> list[tuple[str, str]]:
        """Directories opened by configuration in which something is run later."""
        rules = rules_for(
            Place(f"{self._state}/workspace", self._state, self._machine.homes()), Scope.MACHINE
        )
        found = []
        for path in self._wishes.writable:
            real = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 - text paths
            later = real.startswith(("/etc", "/usr", "/bin", "/sbin", "/lib", "/var/spool"))
            home = any(real == home for home in self._machine.homes())
            if later or home or effective(rules, real).value == "hidden":
                found.append((f"{real} (opened by confineWritable)", real))
        return found


def _find(name: str) -> Sandbox | str:
    """The backend, or why there is none. Blocking."""
    if name == "bwrap":
        program = find_program()
        return Bwrap(program) if program else "bubblewrap is not installed"
    if name == "landlock":
        from claw_engine.sandbox import launcher  # loads ctypes: only where it is asked for

        version = launcher.abi()
        return Landlock(version) if version > 0 else "this kernel has no Landlock"
    return f"there is no backend named {name}"
