"""AP-03: what was approved is what runs. Real files, changed between question and spawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from claw_engine.approvals.binding import bind, verify
from claw_engine.approvals.model import Binding
from tests.approvals.conftest import Box


def bound(box: Box, command: str) -> Binding:
    return bind(command, str(box.cwd), box.env, box.fs)


def changes(box: Box, binding: Binding) -> tuple[str, ...]:
    return verify(binding, box.env, box.fs)


def overwrite(box: Box) -> None:
    (box.cwd / "s.sh").write_text("echo B\n")


def rename_over(box: Box) -> None:
    new = box.cwd / "new.sh"
    new.write_text("echo B\n")
    new.rename(box.cwd / "s.sh")


def rename_same_content_over(box: Box) -> None:
    new = box.cwd / "new.sh"
    new.write_text("echo A\n")
    new.rename(box.cwd / "s.sh")


def remove(box: Box) -> None:
    (box.cwd / "s.sh").unlink()


def recreate_folder(box: Box) -> None:
    box.cwd.rename(box.root / "moved")
    box.cwd.mkdir()
    (box.cwd / "s.sh").write_text("echo A\n")


def folder_becomes_symlink(box: Box) -> None:
    box.cwd.rename(box.root / "moved")
    box.cwd.symlink_to(box.root / "moved")


def test_the_same_word_in_another_folder_is_another_program(box: Box) -> None:
    box.program("work/tool")
    box.program("work/sub/tool")
    binding = bound(box, "./tool && cd sub && ./tool")
    tools = [file.real for file in binding.files if file.real.endswith("tool")]
    assert tools == [str(box.cwd / "tool"), str(box.cwd / "sub/tool")]


SWAPS = [overwrite, rename_over, rename_same_content_over, remove, recreate_folder,
         folder_becomes_symlink]  # fmt: skip
COMMANDS = [
    "sh ./s.sh",
    "sh s.sh arg",
    "bash -x s.sh",
    "bash --rcfile=s.sh",
    "python3 s.sh",
    "env A=1 sh ./s.sh",
    "A=1 sh ./s.sh",
    "sudo sh ./s.sh",
    "sh -c './s.sh'",
    "sh -c 'sh ./s.sh; ls'",
    ". ./s.sh",
    "cat x | sh ./s.sh > out",
    "./s.sh",
    "cd . && ./s.sh",
    "$PWD/s.sh",
    "awk -fs.sh",
]


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("command", COMMANDS)
def test_ap_03_a_swapped_script_is_noticed(
    box: Box, command: str, swap: Callable[[Box], None]
) -> None:
    box.program("work/s.sh", "echo A\n")
    env = {**box.env, "PWD": str(box.cwd)}
    binding = bind(command, str(box.cwd), env, box.fs)
    assert verify(binding, env, box.fs) == ()
    swap(box)
    assert verify(binding, env, box.fs) != ()


def test_ap_03_a_switched_symlink_is_noticed(box: Box) -> None:
    box.program("work/a.sh", "echo A\n")
    box.program("work/b.sh", "echo B\n")
    link = box.cwd / "s.sh"
    link.symlink_to("a.sh")
    binding = bound(box, "sh ./s.sh")
    link.unlink()
    link.symlink_to("b.sh")
    assert any("now leads to" in change for change in changes(box, binding))


def test_a_script_that_appears_after_the_question_is_noticed(box: Box) -> None:
    binding = bound(box, "sh ./later.sh")
    box.program("work/later.sh")
    assert any("was not there" in change for change in changes(box, binding))


def test_a_program_that_now_comes_first_on_path_is_noticed(box: Box) -> None:
    binding = bound(box, "uname -a")
    assert changes(box, binding) == ()
    box.program("bin/uname")
    assert changes(box, binding) != ()


def test_another_environment_is_noticed(box: Box) -> None:
    binding = bound(box, "uname")
    assert verify(binding, {**box.env, "LC_ALL": "C"}, box.fs) == ("the environment is different",)


def test_a_script_in_a_folder_the_command_changes_to_is_bound(box: Box) -> None:
    script = box.program("work/sub/s.sh", "echo A\n")
    binding = bound(box, "cd sub && sh ./s.sh")
    script.write_text("echo B\n")
    assert changes(box, binding) != ()


def test_data_of_a_plain_program_may_change(box: Box) -> None:
    data = box.cwd / "data.txt"
    data.write_text("1")
    binding = bound(box, "cat data.txt")
    data.write_text("2")
    assert changes(box, binding) == ()


def test_a_large_file_is_bound_by_its_ends_and_times(box: Box) -> None:
    big = box.cwd / "big.bin"
    with big.open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    binding = bound(box, "python3 big.bin")
    with big.open("r+b") as file:
        file.seek(8 * 1024 * 1024)
        file.write(b"x")
    assert changes(box, binding) != ()
