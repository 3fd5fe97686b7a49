"""Rules, argument building and looking at the machine, without starting anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_engine.sandbox.base import Access, Plan, Route, RouteKind, Scope
from claw_engine.sandbox.bwrap import Bwrap
from claw_engine.sandbox.landlock import Landlock
from claw_engine.sandbox.machine import Machine
from claw_engine.sandbox.none import Unconfined
from claw_engine.sandbox.rules import Place, effective, rules_for


def place(root: Path, **changes: object) -> Place:
    for folder in ("state/workspace", "state/agents/main", "home/work", "home/.config"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "home" / ".profile").touch()
    given: dict[str, object] = {
        "workspace": str(root / "state" / "workspace"),
        "state_root": str(root / "state"),
        "homes": (str(root / "home"),),
    }
    return Place(**{**given, **changes})  # type: ignore[arg-type]  # a test's free choice


@pytest.mark.parametrize(
    ("path", "machine", "workspace"),
    [
        ("state/door.key", Access.HIDDEN, Access.HIDDEN),
        ("state/agents/main", Access.HIDDEN, Access.HIDDEN),
        ("state/workspace/a", Access.WRITE, Access.WRITE),
        ("home/.profile", Access.READ, Access.READ),
        ("home/.bash_profile", Access.READ, Access.READ),
        ("home/.config/autostart/x", Access.READ, Access.READ),
        ("home/work/a", Access.WRITE, Access.READ),
        ("home/new", Access.READ, Access.READ),
    ],
)
def test_what_holds_where(tmp_path: Path, path: str, machine: Access, workspace: Access) -> None:
    for scope, expected in ((Scope.MACHINE, machine), (Scope.WORKSPACE, workspace)):
        rules = rules_for(place(tmp_path), scope)
        assert effective(rules, str(tmp_path / path)) is expected, scope


@pytest.mark.parametrize("path", ["/etc/passwd", "/usr/bin/x", "/root/.profile", "/boot/x"])
def test_the_system_is_read_only(tmp_path: Path, path: str) -> None:
    assert effective(rules_for(place(tmp_path), Scope.MACHINE), path) is Access.READ


def test_a_home_that_is_the_workspace_keeps_its_start_up_files(tmp_path: Path) -> None:
    rules = rules_for(place(tmp_path, workspace=str(tmp_path / "home")), Scope.MACHINE)
    assert effective(rules, str(tmp_path / "home" / "new")) is Access.WRITE
    assert effective(rules, str(tmp_path / "home" / ".profile")) is Access.READ


def test_a_state_directory_in_the_workspace_stays_hidden(tmp_path: Path) -> None:
    rules = rules_for(place(tmp_path, workspace=str(tmp_path)), Scope.MACHINE)
    assert effective(rules, str(tmp_path / "state" / "door.key")) is Access.HIDDEN
    assert effective(rules, str(tmp_path / "x")) is Access.WRITE


@pytest.mark.parametrize("workspace", ["state", "state/agents"])
def test_a_workspace_of_the_engine_is_not_opened(tmp_path: Path, workspace: str) -> None:
    closed = place(tmp_path, workspace=str(tmp_path / workspace), workspace_closed=True)
    rules = rules_for(closed, Scope.MACHINE)
    assert effective(rules, str(tmp_path / "state" / "agents" / "main")) is Access.HIDDEN


def test_what_is_opened_never_opens_the_state_directory(tmp_path: Path) -> None:
    opened = place(tmp_path, writable=(str(tmp_path / "state"), str(tmp_path / "home")))
    rules = rules_for(opened, Scope.MACHINE)
    assert effective(rules, str(tmp_path / "state" / "door.key")) is Access.HIDDEN
    assert effective(rules, str(tmp_path / "home" / "new")) is Access.WRITE


def test_directories_above_a_protected_one_are_pinned(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "state"
    (deep / "workspace").mkdir(parents=True)
    rules = rules_for(Place(str(deep / "workspace"), str(deep)), Scope.MACHINE)
    for above in (tmp_path / "a", tmp_path / "a" / "b"):
        assert rules[str(above)] is Access.WRITE


# ── argument building ───────────────────────────────────────────────────────────────────────────


def test_bwrap_arguments(tmp_path: Path) -> None:
    plan = Plan(
        ("/bin/true", "--x"), "/w", {"A": "1"},
        {"/": Access.READ, str(tmp_path): Access.HIDDEN, "/tmp": Access.WRITE},
        network=False, uid=1000,
    )  # fmt: skip
    wrapped = Bwrap("/usr/bin/bwrap").wrap(plan)
    text = " ".join(wrapped.argv)
    assert wrapped.monitor
    assert wrapped.argv[-3:] == ("--", "/bin/true", "--x")
    for part in (
        "--unshare-pid", "--unshare-net", "--die-with-parent", "--cap-drop ALL", "--ro-bind / /",
        "--proc /proc", "--dev /dev", f"--tmpfs {tmp_path}", f"--remount-ro {tmp_path}",
        "--bind-try /tmp /tmp", "--ro-bind /proc/sys /proc/sys",
    ):  # fmt: skip
        assert part in text, part
    assert "--cap-add" not in text
    assert text.index("--bind-try /tmp /tmp") < text.index(f"--tmpfs {tmp_path}")


def test_bwrap_gives_root_no_capability_over_mounts() -> None:
    text = " ".join(Bwrap("bwrap").wrap(Plan(("true",), "/", {}, uid=0)).argv)
    assert "CAP_DAC_OVERRIDE" in text
    for name in ("SYS_ADMIN", "SYS_PTRACE", "MKNOD", "DAC_READ_SEARCH", "NET_ADMIN", "SYS_RAWIO"):
        assert name not in text


def test_landlock_arguments() -> None:
    plan = Plan(
        ("true",), "/", {}, {"/": Access.READ, "/s": Access.HIDDEN, "/w": Access.WRITE},
        network=False,
    )  # fmt: skip
    argv = Landlock(7, "/py").wrap(plan).argv
    assert argv[:3] == ("/py", "-I", "-S")
    assert argv[4:] == ("--no-network", "r:/", "h:/s", "w:/w", "--", "true")


@pytest.mark.parametrize(
    ("backend", "closed"),
    [
        (Bwrap("b"), {RouteKind.SOCKET, RouteKind.FILE}),
        (Landlock(7), {RouteKind.ABSTRACT, RouteKind.FILE}),
        (Landlock(3), {RouteKind.FILE}),
        (Unconfined(), set()),
    ],
    ids=["bwrap", "landlock 7", "landlock 3", "none"],
)
def test_what_each_backend_closes(
    backend: Bwrap | Landlock | Unconfined, closed: set[RouteKind]
) -> None:
    found = {kind for kind in RouteKind if backend.closes(Route(kind, "x"), network=True)}
    assert found == closed


# ── looking at the machine ──────────────────────────────────────────────────────────────────────

UNIX = """Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 10 /run/some.sock
0000000000000000: 00000003 00000000 00000000 0001 03 11 /run/connected.sock
0000000000000000: 00000002 00000000 00010000 0001 01 12 @/tmp/dbus-AbC
0000000000000000: 00000002 00000000 00010000 0001 01 13 /with space.sock
0000000000000000: 00000003 00000000 00000000 0001 03 14
"""
TCP = """  sl  local_address rem_address   st
   0: 0100007F:0947 00000000:0000 0A 0
   1: 0100007F:1F90 00000000:0000 01 0
"""


def looking(tmp_path: Path, tcp: str = TCP) -> Machine:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "unix").write_text(UNIX)
    (tmp_path / "net" / "tcp").write_text(tcp)
    return Machine({}, 1000, tmp_path, str(tmp_path / "root"))


def test_listening_sockets(tmp_path: Path) -> None:
    assert list(looking(tmp_path).listening()) == [
        "/run/some.sock", "@/tmp/dbus-AbC", "/with space.sock",
    ]  # fmt: skip


def test_routes_over_the_network(tmp_path: Path) -> None:
    routes = {(route.kind, route.what) for route in looking(tmp_path).routes()}
    assert routes == {
        (RouteKind.ABSTRACT, "an abstract D-Bus socket"),
        (RouteKind.TCP, "docker on port 2375"),
    }


def test_sshd(tmp_path: Path) -> None:
    machine = looking(tmp_path, TCP.replace("0947", "0016"))
    assert machine.sshd_listens()
    assert "ssh to this machine" in {route.what for route in machine.routes()}


def test_no_proc_no_routes(tmp_path: Path) -> None:
    assert Machine({}, 1000, tmp_path / "none", str(tmp_path)).routes() == ()
