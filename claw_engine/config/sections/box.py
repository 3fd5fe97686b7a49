"""Settings of the sandbox: which sessions work in one, what they see, and the container's limits.

Keys of `agents.defaults.sandbox` and `agents.list[].sandbox` as OpenClaw 2026.2.26 has them;
`backend`, `docker.engine` and `docker.timeoutSec` are ours.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from claw_engine.config.sections.base import Amount, Count, Names, Number, Section, laid_over
from claw_engine.shapes import Before


def _word(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Size = Annotated[str, Before(_word)]
"""A size as docker words (`512m`), or bytes."""


def _ulimit(value: object) -> object:
    """`1024`, `"1024:2048"` or `{soft, hard}` as docker words."""
    if isinstance(value, dict):
        soft, hard = value.get("soft"), value.get("hard")
        return f"{soft}:{hard}" if hard is not None else str(soft)
    return _word(value)


class DockerSection(Section, frozen=True):
    """`sandbox.docker`. `engine` is the program: docker, podman, or auto (docker first)."""

    engine: Literal["auto", "docker", "podman"] = "auto"
    image: str = "openclaw-sandbox:bookworm-slim"
    container_prefix: str = "openclaw-sbx-"
    workdir: str = "/workspace"
    read_only_root: bool = True
    tmpfs: Names = ("/tmp", "/var/tmp", "/run")
    network: str = "none"
    user: str | None = None
    cap_drop: Names = ("ALL",)
    env: dict[str, str] = field(default_factory=lambda: {"LANG": "C.UTF-8"})
    setup_command: str | None = None
    pids_limit: Count | None = None
    memory: Size | None = None
    memory_swap: Size | None = None
    cpus: Number | None = None
    ulimits: dict[str, Annotated[str, Before(_ulimit)]] = field(default_factory=dict)
    seccomp_profile: str | None = None
    apparmor_profile: str | None = None
    dns: Names = ()
    extra_hosts: Names = ()
    binds: Names = ()
    timeout_sec: Count = 60
    dangerously_allow_reserved_container_targets: bool = False
    dangerously_allow_external_bind_sources: bool = False
    dangerously_allow_container_namespace_join: bool = False


class PruneSection(Section, frozen=True):
    """`sandbox.prune`; 0 switches one of them off."""

    idle_hours: Amount = 24
    max_age_days: Amount = 7


class BoxSettings(Section, frozen=True):
    """`sandbox`. `per_session` is the older word for `scope`."""

    mode: Literal["off", "non-main", "all"] = "off"
    scope: Literal["session", "agent", "shared"] | None = None
    per_session: bool | None = None
    workspace_access: Literal["none", "ro", "rw"] = "none"
    workspace_root: str | None = None
    backend: Literal["auto", "docker", "bwrap", "landlock"] = "auto"
    docker: DockerSection = DockerSection()
    prune: PruneSection = PruneSection()


class ElevatedSettings(Section, frozen=True):
    """`tools.elevated`: who may have a command run outside the sandbox; senders by provider."""

    enabled: bool = True
    allow_from: dict[str, tuple[str | int, ...]] = field(default_factory=dict)


def merged(base: BoxSettings, own: BoxSettings | None) -> BoxSettings:
    """The agent's own keys over the defaults, section by section."""
    return base if own is None else laid_over(base, own)
