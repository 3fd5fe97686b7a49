"""The docker backend: argument sets for the docker command line, as OpenClaw 2026.2.26 has them.

Pure. Which container belongs to whom, and pulling images, is its caller's business; a container
has no route to this machine's services except what is bound into it, so binds are checked here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from claw_engine.errors import ClawError
from claw_engine.sandbox.base import Plan, Route, Wrapped

IMAGE = "openclaw-sandbox:bookworm-slim"
PREFIX = "openclaw-sbx-"
WORKDIR = "/workspace"
_FORBIDDEN = ("/etc", "/proc", "/sys", "/dev", "/root", "/boot", "/run", "/var/run")


class DockerRefused(ClawError):
    """A setting that would open the container to this machine."""


class DockerSettings(Struct, frozen=True):
    """`agents.*.sandbox.docker`; sizes as docker words, `ulimits` as NAME=SOFT[:HARD]."""

    image: str = IMAGE
    network: str = "none"
    read_only: bool = True
    tmpfs: tuple[str, ...] = ("/tmp", "/var/tmp", "/run")
    cap_drop: tuple[str, ...] = ("ALL",)
    user: str | None = None
    memory: str | None = None
    memory_swap: str | None = None
    cpus: float | None = None
    pids_limit: int | None = None
    ulimits: tuple[str, ...] = ()
    seccomp: str | None = None
    apparmor: str | None = None
    dns: tuple[str, ...] = ()
    extra_hosts: tuple[str, ...] = ()
    binds: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: {"LANG": "C.UTF-8"})


def hardening(settings: DockerSettings) -> list[str]:
    """The options of `docker create` and `docker run` that confine.

    Raises DockerRefused for a network, profile or bind that would undo it.
    """
    _check(settings)
    args: list[str] = []
    if settings.read_only:
        args.append("--read-only")
    for path in settings.tmpfs:
        args += ["--tmpfs", path]
    args += ["--network", settings.network]
    if settings.user:
        args += ["--user", settings.user]
    for name in settings.cap_drop:
        args += ["--cap-drop", name]
    args += ["--security-opt", "no-new-privileges"]
    for kind, profile in (("seccomp", settings.seccomp), ("apparmor", settings.apparmor)):
        if profile:
            args += ["--security-opt", f"{kind}={profile}"]
    limits: tuple[tuple[str, object], ...] = (
        ("--pids-limit", settings.pids_limit),
        ("--memory", settings.memory),
        ("--memory-swap", settings.memory_swap),
        ("--cpus", settings.cpus),
    )
    for option, value in limits:
        if value is not None:
            args += [option, f"{value:g}" if isinstance(value, float) else str(value)]
    for text in settings.ulimits:
        args += ["--ulimit", text]
    for server in settings.dns:
        args += ["--dns", server]
    for host in settings.extra_hosts:
        args += ["--add-host", host]
    for name, text in settings.env.items():
        args += ["--env", f"{name}={text}"]
    for bind in settings.binds:
        args += ["-v", bind]
    return args


def create(settings: DockerSettings, name: str, workspace: str, access: str) -> list[str]:
    """`docker create …` of a container that waits for commands; `access` is none, ro or rw."""
    mount = [] if access == "none" else ["-v", f"{workspace}:{WORKDIR}{_mode(access)}"]
    return [
        "docker", "create", "--name", f"{PREFIX}{name}", *hardening(settings), *mount,
        "--workdir", WORKDIR, settings.image, "sleep", "infinity",
    ]  # fmt: skip


def execute(name: str, argv: Sequence[str], env: Mapping[str, str], *, tty: bool) -> list[str]:
    """`docker exec …` of one command in a running container."""
    options = ["-i", *(["-t"] if tty else [])]
    for variable, text in env.items():
        options += ["--env", f"{variable}={text}"]
    return ["docker", "exec", *options, "--workdir", WORKDIR, f"{PREFIX}{name}", *argv]


class Docker:
    """One container for one command, the workspace mounted in it."""

    name = "docker"

    def __init__(self, settings: DockerSettings, workspace: str, access: str = "rw") -> None:
        self._settings, self._workspace, self._access = settings, workspace, access

    def wrap(self, plan: Plan) -> Wrapped:
        """The environment of the docker client stays ours; the command gets the container's."""
        mount = f"{self._workspace}:{WORKDIR}{_mode(self._access)}"
        argv = (
            "docker", "run", "--rm", "-i", "--init", *hardening(self._settings), "-v", mount,
            "--workdir", WORKDIR, self._settings.image, *plan.argv,
        )  # fmt: skip
        return Wrapped(argv, plan.env, monitor=True)

    def closes(self, route: Route, *, network: bool) -> bool:
        return True


def _mode(access: str) -> str:
    return ":ro" if access == "ro" else ""


def _check(settings: DockerSettings) -> None:
    if settings.network == "host" or settings.network.startswith("container:"):
        raise DockerRefused(f"sandbox.docker.network {settings.network} would open this machine.")
    for kind, profile in (("seccomp", settings.seccomp), ("apparmor", settings.apparmor)):
        if profile == "unconfined":
            raise DockerRefused(f"sandbox.docker.{kind} unconfined would undo the sandbox.")
    for bind in settings.binds:
        _check_bind(bind)


def _check_bind(bind: str) -> None:
    source, _, rest = bind.partition(":")
    target = rest.partition(":")[0]
    if not source.startswith("/"):
        raise DockerRefused(f"sandbox.docker.binds: {bind} needs an absolute source.")
    for path in {os.path.normpath(source), os.path.realpath(source)}:
        closed = any(path == root or path.startswith(f"{root}/") for root in _FORBIDDEN)
        if closed or path == "/" or path.endswith("/docker.sock"):
            raise DockerRefused(f"sandbox.docker.binds: {source} must not be bound.")
    if target in (WORKDIR, "/agent"):
        raise DockerRefused(f"sandbox.docker.binds: {target} is the workspace's own place.")
