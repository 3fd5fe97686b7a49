from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from claw_engine.tools import fileio
from claw_engine.tools.guard import Access, Guard, PathChanged, PathRefused


class Places:
    """A state directory with a workspace inside, and a folder outside both."""

    def __init__(self, root: Path) -> None:
        self.state = root / "state"
        self.workspace = self.state / "workspace"
        self.outside = root / "outside"
        self.workspace.mkdir(parents=True)
        self.outside.mkdir()
        (self.state / "openclaw.json").write_text("{secret}")
        (self.state / "agents" / "main").mkdir(parents=True)
        (self.state / "agents" / "main" / "auth.json").write_text("key")
        (self.state / "workspace-other").mkdir()
        (self.workspace / "note.md").write_text("hello")
        (self.outside / "data.txt").write_text("data")
        self.guard = Guard(self.workspace, self.state)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.mark.parametrize(
    ("given", "access"),
    [
        ("note.md", Access.FREE),
        ("./a/../note.md", Access.FREE),
        ("new/deep/file.txt", Access.FREE),
        ("../../outside/data.txt", Access.ASK),
        ("{outside}/new.txt", Access.ASK),
        ("/etc/hostname", Access.ASK),
    ],
)
def test_where_a_path_lies_decides(places: Places, given: str, access: Access) -> None:
    target = places.guard.decide(given.replace("{outside}", str(places.outside)))
    assert target.access is access


@pytest.mark.parametrize(
    "given",
    [
        "../openclaw.json",
        "{state}/openclaw.json",
        "{state}",
        "{state}/does-not-exist",
        "{state}/workspace-other/x",
        "../agents/main/auth.json",
        "/proc/self/environ",
        "/proc/self/root{state}/openclaw.json",
        "/proc/self/cwd/x",
        "/dev/stdin",
        "/dev/null",
        "/sys/kernel/notes",
        "a\0b",
        "a\ud800b",
        "~no-such-user-xyz/file",
        "   ",
    ],
)
def test_closed_places_are_refused(places: Places, given: str) -> None:
    with pytest.raises(PathRefused):
        places.guard.decide(given.replace("{state}", str(places.state)))


def test_links_are_followed_before_deciding(places: Places) -> None:
    (places.workspace / "link").symlink_to(places.state / "openclaw.json")
    (places.workspace / "dir").symlink_to(places.state)
    (places.outside / "way").symlink_to(places.state / "agents")
    for given in ("link", "dir/openclaw.json", f"{places.outside}/way/main/auth.json"):
        with pytest.raises(PathRefused, match="state directory"):
            places.guard.decide(given)
    (places.workspace / "out").symlink_to(places.outside)
    assert places.guard.decide("out/data.txt").access is Access.ASK
    (places.outside / "back").symlink_to(places.workspace / "note.md")
    assert places.guard.decide(f"{places.outside}/back").access is Access.FREE


def test_a_workspace_around_the_state_does_not_open_it(tmp_path: Path) -> None:
    places = Places(tmp_path)
    guard = Guard(tmp_path, places.state)
    assert guard.decide("outside/data.txt").access is Access.FREE
    for given in ("state/openclaw.json", "state/workspace/note.md", "state"):
        with pytest.raises(PathRefused):
            guard.decide(given)


@pytest.mark.parametrize("workspace", ["", "agents", "agents/main", "credentials"])
def test_the_state_or_an_engine_folder_as_workspace_stays_closed(
    places: Places, workspace: str
) -> None:
    guard = Guard(places.state / workspace, places.state)
    with pytest.raises(PathRefused):
        guard.decide(str(places.state / workspace / "file"))


def test_hard_links_to_the_state_are_refused(places: Places) -> None:
    os.link(places.state / "openclaw.json", places.workspace / "copy.json")
    os.link(places.state / "agents/main/auth.json", places.outside / "copy.json")
    for given in ("copy.json", f"{places.outside}/copy.json"):
        with pytest.raises(PathRefused, match="hard link"):
            places.guard.decide(given)


def test_hard_links_elsewhere_are_fine(places: Places) -> None:
    os.link(places.workspace / "note.md", places.workspace / "twin.md")
    assert places.guard.decide("twin.md").access is Access.FREE


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@pytest.mark.parametrize(("make", "kind"), [(make_fifo, "FIFO"), (make_socket, "socket")])
def test_special_files_are_refused(places: Places, make: Callable[[Path], None], kind: str) -> None:
    make(places.workspace / "special")
    with pytest.raises(PathRefused, match=kind):
        places.guard.decide("special")


def test_a_file_swapped_for_a_link_is_not_opened(places: Places) -> None:
    target = places.guard.decide("note.md")
    (places.workspace / "note.md").unlink()
    (places.workspace / "note.md").symlink_to(places.state / "openclaw.json")
    with pytest.raises(PathChanged), places.guard.open_read(target):
        pass


def test_a_folder_swapped_for_a_link_is_not_entered(places: Places) -> None:
    (places.workspace / "a").mkdir()
    (places.workspace / "a" / "openclaw.json").write_text("mine")
    target = places.guard.decide("a/openclaw.json")
    (places.workspace / "a").rename(places.workspace / "b")
    (places.workspace / "a").symlink_to(places.state)
    with pytest.raises(PathChanged), places.guard.open_read(target):
        pass


def test_a_file_replaced_by_another_is_not_opened(places: Places) -> None:
    target = places.guard.decide("note.md")
    (places.workspace / "other").write_text("other")
    (places.workspace / "other").replace(places.workspace / "note.md")
    with pytest.raises(PathChanged, match="another file"), places.guard.open_read(target):
        pass


def test_a_file_linked_to_the_state_after_the_decision_is_not_opened(places: Places) -> None:
    target = places.guard.decide("note.md")
    os.link(places.workspace / "note.md", places.state / "agents" / "taken.json")
    with pytest.raises(PathRefused, match="hard link"), places.guard.open_read(target):
        pass


def test_the_state_under_another_name_is_recognised_while_walking(places: Places) -> None:
    """A moved state directory stands in for a bind mount: same folder, another path."""
    target = places.guard.decide(f"{places.outside}/alias/openclaw.json")
    moved = places.outside / "alias"
    places.state.rename(moved)
    places.state.symlink_to(moved)
    with pytest.raises(PathChanged, match="state directory"), places.guard.parent(target):
        pass


def test_a_folder_flipped_to_the_state_and_back_never_shows_a_secret(places: Places) -> None:
    folder, aside, link = (places.workspace / name for name in ("way", "aside", "link"))
    folder.mkdir()
    (folder / "openclaw.json").write_text("mine")
    link.symlink_to(places.state)
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            folder.rename(aside)
            link.rename(folder)
            folder.rename(link)
            aside.rename(folder)

    flipper = threading.Thread(target=flip)
    flipper.start()
    seen: set[bytes] = set()
    try:
        for _ in range(300):
            try:
                target = places.guard.decide("way/openclaw.json")
                with places.guard.open_read(target) as fd:
                    seen.add(os.read(fd, 100))
            except (PathRefused, PathChanged, OSError):
                continue
    finally:
        stop.set()
        flipper.join()
    assert seen <= {b"mine"}


def test_no_descriptor_is_left_open(places: Places) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    target = places.guard.decide("note.md")
    with places.guard.open_read(target) as fd:
        assert os.read(fd, 10) == b"hello"
    missing = places.guard.decide("no/such/file")
    with pytest.raises(FileNotFoundError), places.guard.parent(missing):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_private_file_with_another_name_outside_is_asked_for(places: Places) -> None:
    secret = places.outside / "id_rsa"
    secret.write_text("key")
    secret.chmod(0o600)
    os.link(secret, places.workspace / "innocent.txt")
    target = places.guard.decide("innocent.txt")
    assert target.access is Access.ASK
    assert "hard link" in target.why
    # What everybody may read is no secret; package managers link such files by the thousand.
    secret.chmod(0o644)
    assert places.guard.decide("innocent.txt").access is Access.FREE


def test_a_private_file_with_all_its_names_in_the_workspace_is_free(places: Places) -> None:
    (places.workspace / "note.md").chmod(0o600)
    (places.workspace / "deep").mkdir()
    os.link(places.workspace / "note.md", places.workspace / "deep" / "twin.md")
    assert places.guard.decide("note.md").access is Access.FREE
    os.link(places.workspace / "note.md", places.outside / "third.md")
    assert places.guard.decide("note.md").access is Access.ASK


RACES = int(os.environ.get("CLAW_RACES", "200"))
"""Rounds of each race; the full size of the promise is 1,000."""


@pytest.mark.parametrize("swap", ["link", "hard link", "folder"])
def test_a_name_swapped_between_check_and_use_never_leads_out(places: Places, swap: str) -> None:
    """Reads and writes against a flipping name: the state's file is never read nor changed."""
    secret = places.state / "openclaw.json"
    way = places.workspace / "way"
    way.mkdir()
    name = way / "openclaw.json"
    mine, trap = places.workspace / "mine", places.workspace / "trap"
    name.write_text("mine")
    if swap == "folder":
        trap.symlink_to(places.state)
    elif swap == "link":
        trap.symlink_to(secret)
    else:
        os.link(secret, trap)
    here = way if swap == "folder" else name
    stop = threading.Event()

    def put(source: Path, name: Path) -> None:
        while True:
            try:
                source.rename(name)
                return
            except OSError:  # a write has made the folder anew in the gap
                shutil.rmtree(name, ignore_errors=True)

    def flip() -> None:
        while not stop.is_set():
            here.rename(mine)
            put(trap, here)
            here.rename(trap)
            put(mine, here)

    flipper = threading.Thread(target=flip)
    flipper.start()
    seen: set[bytes] = set()
    try:
        for round_ in range(RACES):
            try:
                target = places.guard.decide("way/openclaw.json")
                with places.guard.open_read(target) as fd:
                    seen.add(os.read(fd, 100))
                fileio.write_whole(places.guard, target, b"mine", f"t{round_}")
            except (PathRefused, PathChanged, fileio.FileProblem, OSError):
                continue
    finally:
        stop.set()
        flipper.join()
    assert seen <= {b"mine"}
    assert secret.read_text() == "{secret}"
    # The control: without a flip it is read and written every time.
    for round_ in range(20):
        target = places.guard.decide("note.md")
        with places.guard.open_read(target) as fd:
            assert os.read(fd, 100) == b"hello"
        fileio.write_whole(places.guard, target, b"hello", f"c{round_}")
