"""Argument sets of the docker command line, what is refused in them, and who is in which box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.config.sections.box import BoxSettings, DockerSection, merged
from claw_engine.sandbox.box import Backend, Box, box_of, is_boxed, scope_of, slug
from claw_engine.sandbox.docker import (
    DockerRefused,
    create,
    dangers,
    digest,
    execute,
    hardening,
    killer,
)
from claw_engine.sandbox.registry import Entry, stale
from claw_engine.shapes import read

STATE = "/srv/claw"


def settings(**more: Any) -> BoxSettings:
    return read(BoxSettings, {"mode": "all", **more})


def docker(**more: Any) -> DockerSection:
    return read(DockerSection, more)


def box(session: str = "agent:main:x", agent: str = "main", **more: Any) -> Box:
    return box_of(
        settings(**more), session_key=session, agent_id=agent, agent_workspace=f"/w/{agent}",
        state_root=STATE,
    )  # fmt: skip


def test_defaults() -> None:
    assert hardening(docker()) == [
        "--read-only", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run",
        "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--env", "LANG=C.UTF-8",
    ]  # fmt: skip


def test_limits() -> None:
    text = " ".join(
        hardening(
            docker(
                user="1000:1000", memory="1g", memorySwap="2g", cpus=1.0, pidsLimit=256,
                ulimits={"nproc": 256, "nofile": {"soft": 10, "hard": 20}},
                binds=["/srv/data:/data:ro"],
            )
        )
    )  # fmt: skip
    for part in (
        "--user 1000:1000", "--pids-limit 256", "--memory 1g", "--memory-swap 2g", "--cpus 1",
        "--ulimit nproc=256", "--ulimit nofile=10:20", "-v /srv/data:/data:ro",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize(
    ("access", "mounts"),
    [
        ("rw", ["/w/main:/workspace"]),
        ("ro", ["OWN:/workspace", "/w/main:/agent:ro"]),
        ("none", ["OWN:/workspace"]),
    ],
)
def test_mounts(access: str, mounts: list[str]) -> None:
    made = box(workspaceAccess=access)
    argv = create(made, STATE, 5)
    assert argv[:3] == ["create", "--name", made.name]
    found = [argv[n + 1] for n, word in enumerate(argv) if word == "-v"]
    assert found == [mount.replace("OWN", made.workspace) for mount in mounts]
    assert "openclaw.createdAtMs=5" in argv and f"openclaw.configHash={digest(made)}" in argv


def test_one_command_in_a_container() -> None:
    assert execute("c", ["ls"], {"X": "1"}, "/workspace/a", tty=True) == [
        "exec", "-i", "-t", "--env", "X=1", "--workdir", "/workspace/a", "c", "ls",
    ]  # fmt: skip
    assert "CLAW_BOX_ID=abc" in killer("CLAW_BOX_ID=abc")


REFUSED = [
    {"network": "host"},
    {"network": "container:x"},
    {"seccompProfile": "unconfined"},
    {"apparmorProfile": "unconfined"},
    *(
        {"binds": [f"{source}:/x"]}
        for source in (
            "/", "/etc", "/proc/1", "/root/.ssh", "/var/run/docker.sock", "rel", "/srv/../etc",
            "/var", STATE, f"{STATE}/credentials", "/srv", "/home/somebody", "/run/podman",
        )
    ),
    {"binds": ["/w/main:/workspace"]},
    {"binds": ["/w/main/a:/agent:ro"]},
    {"binds": ["/w/main:/workspace/sub"]},
]  # fmt: skip


@pytest.mark.parametrize("wanted", REFUSED, ids=str)
def test_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(DockerRefused):
        create(box(docker=wanted), STATE, 0)


def test_what_is_dangerous_on_purpose() -> None:
    allowed = {
        "network": "container:x",
        "dangerouslyAllowContainerNamespaceJoin": True,
        "binds": ["/opt/data:/workspace"],
        "dangerouslyAllowExternalBindSources": True,
        "dangerouslyAllowReservedContainerTargets": True,
    }
    create(box(docker=allowed), STATE, 0)
    # Never on purpose either: these would hand over the machine.
    for never in ({"network": "host"}, {"binds": ["/etc:/x"]}, {"binds": [f"{STATE}:/x"]}):
        with pytest.raises(DockerRefused):
            create(box(docker={**allowed, **never}), STATE, 0)


def test_links_are_followed_first(tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to("/etc")
    found = list(dangers(docker(binds=[f"{tmp_path}/innocent:/x"]), STATE))
    assert [danger.check for danger in found] == ["sandbox.dangerous_bind_mount"]


def test_another_setting_is_another_container() -> None:
    plain = box()
    assert digest(plain) == digest(box())
    for other in ({"docker": {"memory": "1g"}}, {"docker": {"setupCommand": "x"}},
                  {"workspaceAccess": "rw"}):  # fmt: skip
        assert digest(box(**other)) != digest(plain)


# ── who is in which box ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mode", "main", "other"), [("off", False, False), ("non-main", False, True),
                                ("all", True, True)],
)  # fmt: skip
def test_modes(mode: str, main: bool, other: bool) -> None:
    wanted = read(BoxSettings, {"mode": mode})
    assert is_boxed(wanted, "agent:a:main", "agent:a:main") is main
    assert is_boxed(wanted, "agent:a:telegram:group:1", "agent:a:main") is other


@pytest.mark.parametrize(
    ("wanted", "scope"),
    [({}, "agent"), ({"scope": "session"}, "session"), ({"perSession": True}, "session"),
     ({"perSession": False}, "shared"), ({"perSession": True, "scope": "agent"}, "agent")],
)  # fmt: skip
def test_scopes(wanted: dict[str, Any], scope: str) -> None:
    assert scope_of(read(BoxSettings, wanted)) == scope


def test_who_shares_a_box() -> None:
    assert box("agent:main:x", scope="agent").name == box("agent:main:y", scope="agent").name
    assert box("agent:main:x", scope="session").name != box("agent:main:y", scope="session").name
    assert box("agent:a:x", "a", scope="shared").name == box("agent:b:x", "b", scope="shared").name
    one = box("agent:a:x", "a", scope="shared", workspaceAccess="rw")
    assert one.name != box("agent:b:x", "b", scope="shared", workspaceAccess="rw").name


@given(st.text(max_size=80), st.text(max_size=80))
def test_names_are_safe_and_apart(one: str, two: str) -> None:
    assert slug(one).strip("abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
    assert len(box(one, scope="session").name) <= 63
    assert (slug(one) == slug(two)) == (one == two)


def test_paths_inside_and_outside() -> None:
    from msgspec.structs import replace

    made = replace(box(workspaceAccess="ro"), backend=Backend.DOCKER)
    assert made.outside("/workspace/a/b") == "a/b"
    assert made.outside("/workspace") == "."
    assert made.outside("/agent/x") == "/w/main/x"
    assert made.outside("/workspaces/x") == "/workspaces/x"
    assert made.inside(f"{made.workspace}/a") == "/workspace/a"
    assert made.inside("/w/main/b") == "/agent/b"
    assert made.inside("/etc") is None
    here = replace(made, backend=Backend.BWRAP)
    assert here.inside("/etc") == "/etc" and here.outside("/workspace/a") == "/workspace/a"


def test_an_agents_own_settings_lie_over_the_defaults() -> None:
    base = read(BoxSettings, {"mode": "all", "docker": {"memory": "1g", "image": "a"}})
    own = read(BoxSettings, {"scope": "session", "docker": {"image": "b"}})
    both = merged(base, own)
    assert (both.mode, both.scope, both.docker.memory, both.docker.image) == (
        "all", "session", "1g", "b",
    )  # fmt: skip
    assert merged(base, None) is base


@pytest.mark.parametrize(
    ("made", "used", "gone"), [(0, 0, True), (99, 99, False), (0, 99, True), (80, 80, True)]
)
def test_stale(made: int, used: int, gone: bool) -> None:
    """Idle for more than 10 hours, or older than 2 days, 100 hours after the start."""
    hour = 3_600_000
    entry = Entry("c", "k", "i", made * hour, used * hour, "d")
    assert bool(stale([entry], 100 * hour, 10, 2)) is gone
    assert not stale([entry], 100 * hour, 0, 0)
