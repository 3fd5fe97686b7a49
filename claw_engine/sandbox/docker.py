"""Argument sets for the docker command line (podman takes the same), and what is refused in them.

Pure. Keys and hardening: OpenClaw 2026.2.26 (gateway digest §6.4). Which container exists and for
how long is told in containers.py.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from claw_engine.errors import ClawError
from claw_engine.sandbox.box import AGENT_MOUNT, Box, WorkspaceAccess

if TYPE_CHECKING:
    from claw_engine.config.sections.box import DockerSection

LABEL, KEY_LABEL, MADE_LABEL, HASH_LABEL = (
    "openclaw.sandbox",
    "openclaw.sessionKey",
    "openclaw.createdAtMs",
    "openclaw.configHash",
)

FORBIDDEN_SOURCES = (
    "/etc", "/proc", "/sys", "/dev", "/root", "/boot", "/run", "/var/run", "/var/lib/docker",
    "/private/etc", "/private/var/run",
)  # fmt: skip
"""Never bound into a container, nor anything below."""

_SOCKETS = ("/docker.sock", "/podman.sock", "/containerd.sock", "/crio.sock")

IDLE = 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done'
"""What a container does between commands; a shell that waits also buries orphans."""


class DockerRefused(ClawError):
    """A setting that would open the container to this machine."""


class Danger(Struct, frozen=True):
    """One setting that opens a container; `check` is the audit's id for it."""

    check: str
    text: str


def dangers(
    settings: DockerSection, state_root: str, roots: Sequence[str] | None = None
) -> Iterator[Danger]:
    """What would undo the sandbox. Links are followed first.

    `roots` are the directories that binds may come from (None: any that is not forbidden).
    """
    network = settings.network
    joins = network.startswith("container:")
    allowed = settings.dangerously_allow_container_namespace_join
    if network == "host" or (joins and not allowed):
        text = f"sandbox.docker.network {network} would open this machine's network"
        yield Danger("sandbox.dangerous_network_mode", text)
    profiles = (("seccomp", settings.seccomp_profile), ("apparmor", settings.apparmor_profile))
    for kind, profile in profiles:
        if profile == "unconfined":
            text = f"sandbox.docker.{kind}Profile unconfined would undo the sandbox"
            yield Danger(f"sandbox.dangerous_{kind}_profile", text)
    for bind in settings.binds:
        yield from _bind_dangers(bind, settings, state_root, roots)


def _bind_dangers(
    bind: str, settings: DockerSection, state_root: str, roots: Sequence[str] | None
) -> Iterator[Danger]:
    source, _, rest = bind.partition(":")
    target = os.path.normpath(rest.partition(":")[0])
    if not source.startswith("/"):
        text = f"sandbox.docker.binds: {bind} needs an absolute source"
        yield Danger("sandbox.bind_mount_non_absolute", text)
        return
    state = os.path.realpath(state_root)
    for path in {os.path.normpath(source), os.path.realpath(source)}:
        closed = any(_overlaps(path, root) for root in (*FORBIDDEN_SOURCES, state))
        if closed or path == "/" or path.endswith(_SOCKETS):
            text = f"sandbox.docker.binds: {source} must not be bound"
            yield Danger("sandbox.dangerous_bind_mount", text)
            return
        inside = roots is None or any(_within(path, os.path.realpath(root)) for root in roots)
        if not inside and not settings.dangerously_allow_external_bind_sources:
            text = (
                f"sandbox.docker.binds: {source} is outside the workspaces "
                "(dangerouslyAllowExternalBindSources allows it)"
            )
            yield Danger("sandbox.dangerous_bind_mount", text)
            return
    own = (settings.workdir, AGENT_MOUNT)
    reserved = any(_within(target, place) for place in own) or target == "/"
    if reserved and not settings.dangerously_allow_reserved_container_targets:
        text = f"sandbox.docker.binds: {target} is the workspace's own place"
        yield Danger("sandbox.dangerous_bind_mount", text)


def hardening(settings: DockerSection) -> list[str]:
    """The options of `docker create` that confine."""
    args: list[str] = []
    if settings.read_only_root:
        args.append("--read-only")
    for path in settings.tmpfs:
        args += ["--tmpfs", path]
    args += ["--network", settings.network]
    if settings.user:
        args += ["--user", settings.user]
    for name in settings.cap_drop:
        args += ["--cap-drop", name]
    args += ["--security-opt", "no-new-privileges"]
    profiles = (("seccomp", settings.seccomp_profile), ("apparmor", settings.apparmor_profile))
    for kind, profile in profiles:
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
    for name, value in settings.ulimits.items():
        args += ["--ulimit", f"{name}={value}"]
    for server in settings.dns:
        args += ["--dns", server]
    for host in settings.extra_hosts:
        args += ["--add-host", host]
    for name, text in settings.env.items():
        args += ["--env", f"{name}={text}"]
    for bind in settings.binds:
        args += ["-v", bind]
    return args


def create(box: Box, state_root: str, made_ms: int, user: str = "") -> list[str]:
    """`create …` of a container that waits for commands, without the program.

    `user` is who runs in it when the settings name nobody.

    Raises DockerRefused for a network, profile or bind that would undo it.
    """
    settings = box.settings.docker
    for danger in dangers(settings, state_root, (box.workspace, box.agent_workspace)):
        raise DockerRefused(f"{danger.text}.", hint="Change agents.defaults.sandbox.docker.")
    labels = (
        (LABEL, "1"), (KEY_LABEL, box.key), (MADE_LABEL, str(made_ms)), (HASH_LABEL, digest(box)),
    )  # fmt: skip
    return [
        "create", "--name", box.name,
        *(part for name, value in labels for part in ("--label", f"{name}={value}")),
        *(("--user", user) if user and not settings.user else ()),
        *_shape(box),
    ]  # fmt: skip


def digest(box: Box) -> str:
    """Changes with everything a container is made of: another one means another container."""
    shape = json.dumps([*_shape(box), box.settings.docker.setup_command])
    return hashlib.sha256(shape.encode()).hexdigest()


def _shape(box: Box) -> list[str]:
    settings = box.settings.docker
    mounts = ["-v", f"{box.workspace}:{settings.workdir}"]
    if box.access is WorkspaceAccess.READ:
        mounts += ["-v", f"{box.agent_workspace}:{AGENT_MOUNT}:ro"]
    return [
        *hardening(settings), *mounts, "--workdir", settings.workdir,
        settings.image, "/bin/sh", "-c", IDLE,
    ]  # fmt: skip


def execute(
    name: str, argv: Sequence[str], env: Mapping[str, str], workdir: str, *, tty: bool = False
) -> list[str]:
    """`exec …` of one command in a running container, without the program."""
    options = ["-i", *(["-t"] if tty else [])]
    for variable, text in env.items():
        options += ["--env", f"{variable}={text}"]
    return ["exec", *options, "--workdir", workdir, name, *argv]


def killer(mark: str) -> str:
    """A shell script that ends every process with `mark` (NAME=VALUE) in its environment."""
    return (
        "for s in TERM KILL; do f=; for p in /proc/[0-9]*; do "
        f"grep -qs '{mark}' $p/environ && kill -$s ${{p#/proc/}} 2>/dev/null && f=1; "
        "done; [ -z $f ] && exit 0; sleep 0.3 2>/dev/null || sleep 1; done"
    )


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _overlaps(path: str, root: str) -> bool:
    """Whether one lies in the other: a directory above a forbidden one holds it."""
    return _within(path, root) or _within(root, path)
