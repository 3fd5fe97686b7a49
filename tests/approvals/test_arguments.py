"""Rules for certain arguments: what they cover, what is offered, and how they are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.approvals import rulefile
from claw_engine.approvals.arguments import exactly, matches, narrow, words_of
from claw_engine.approvals.evaluate import Answer
from claw_engine.approvals.policy import Rule
from claw_engine.approvals.store import ExecApprovals
from claw_engine.world import RealClock, RealDisk, RealIds, RealSpawn, World
from tests.approvals.conftest import Box

GIT = "/usr/bin/git"
WORDS = st.lists(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=6), max_size=5
)


@given(WORDS, WORDS)
def test_exact_means_these_words_and_no_others(one: list[str], other: list[str]) -> None:
    pattern = exactly(tuple(one))
    assert matches(pattern, tuple(one))
    assert words_of(pattern) == tuple(one)
    assert matches(pattern, tuple(other)) == (one == other)


@pytest.mark.parametrize(
    ("pattern", "arguments", "covered"),
    [
        ("status", ("status",), True),
        ("^status$", ("status",), True),
        ("status", ("status", "-s"), False),
        ("log( -n \\d+)?", ("log", "-n", "3"), True),
        ("log( -n \\d+)?", ("log", "-n 3"), False),
        ("status.*", ("status", "a b"), False),
        ("status.*", ("status", ""), False),
        ("^log\0-n\0\\d+\0$", ("log", "-n", "3"), True),
        ("^log\\x00-n\\x00\\d+\\x00$", ("log", "-n", "3"), True),
        ("", (), False),
        ("(", ("(",), False),
        (".*", ("x" * 9000,), False),
    ],
)
def test_patterns_cover_the_whole(pattern: str, arguments: tuple[str, ...], covered: bool) -> None:
    assert matches(pattern, arguments) == covered


def test_a_rule_for_git_status_covers_git_status(box: Box) -> None:
    rule = Rule("g", GIT, arg_pattern=exactly(("status",)))
    assert box.decide("git status", rule).verdict is Answer.ALLOW
    assert box.decide("git 'status'", rule).segments[0].rule == "/usr/bin/git status"
    for command in ("git", "git status -s", "git push", "git status ''", "git -c a=b status"):
        verdict = box.decide(command, rule)
        assert verdict.verdict is Answer.ASK, command
        assert "does not cover these arguments" in verdict.segments[0].why


def test_the_offer_for_a_launcher_is_narrow_and_says_so(box: Box) -> None:
    offer = box.decide("git status && uname").always
    assert offer.patterns == ("/usr/bin/git status", "/usr/bin/uname")
    assert offer.arguments["/usr/bin/git status"] == (GIT, exactly(("status",)))
    assert any("any arguments could start any program" in note for note in offer.notes)
    assert any("configuration of the repository" in note for note in offer.notes)


@pytest.mark.parametrize(
    "command",
    ["git push", "git -c core.pager=id log", "git log --ext-diff", "git diff --ext", "git log -O",
     "git difftool", "find . -exec id +", "find . -delete", "find . -fprintf x y",
     "tar xf x", "tar -tf x --to-command=id", "tar tf x --checkpoint-a=exec=id", "sort -o x",
     "sort --compress-prog=id", "make", "ssh h", "vim x", "curl x"],
)  # fmt: skip
def test_arguments_that_start_something_are_not_offered(box: Box, command: str) -> None:
    box.program("opt/none")
    offer = box.decide(command).always
    assert offer.patterns == ()
    assert offer.refusal


@pytest.mark.parametrize(
    "command",
    ["fd -Hx id", "fd -Hex py id", "sort -uofoo", "sort -uo foo", "tar tf x -vIid", "tar tf host:x",
     "tar tf x -T list", "tar tf x -vTlist", "tar tf x --files-f=list", "tar -tf x -tFid",
     "npm view x --git=./g", "npm ls -prefix=x", "npm ls --pref x", "docker info",
     "podman ps --runtime=./r", "dpkg -l --pre-invoke=id", "git status --help", "git log --hel",
     "journalctl -u x -nD .", "systemctl status -lH host", "apt list -qoDir=x",
     "pip list --keyring-provider=subprocess", "fd --exec-b id", "find . -files0-from x"],
)  # fmt: skip
def test_an_option_in_another_way_of_writing_is_seen(command: str) -> None:
    name, *arguments = command.split()
    assert narrow(name, tuple(arguments)) is None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("find", (".", "-name", "*.py")), ("tar", ("-tf", "x.tar")), ("git", ("log", "-n", "3")),
     ("systemctl", ("status", "ssh")), ("docker", ("ps",)), ("dpkg", ("-l",)),
     ("find", (".", "-empty", "-o", "-executable")), ("git", ("log", "--oneline", "-p")),
     ("fd", ("-H", "x")), ("sort", ("-u", "x"))],
)  # fmt: skip
def test_arguments_that_only_show(name: str, arguments: tuple[str, ...]) -> None:
    assert narrow(name, arguments)


def test_a_program_that_writes_anywhere_is_offered_with_a_word_about_it(box: Box) -> None:
    assert any("overwrite" in note for note in box.decide("cp a b").always.notes)
    assert box.decide("uname").always.notes == ()


def test_a_bare_rule_for_a_launcher_says_what_it_is(box: Box) -> None:
    verdict = box.decide("git push", Rule("g", GIT))
    assert verdict.verdict is Answer.ALLOW
    assert "it can start any other program" in verdict.segments[0].why


# In the file


def entry(**fields: object) -> bytes:
    allowlist = [{"pattern": GIT, **fields}]
    return json.dumps({"version": 1, "agents": {"main": {"allowlist": allowlist}}}).encode()


@pytest.mark.parametrize("broken", [5, None, ["status"], {}, True])
def test_an_argument_pattern_that_is_no_text_covers_nothing(box: Box, broken: object) -> None:
    (rule,) = rulefile.rules(rulefile.read(entry(argPattern=broken)))
    assert rule.arg_pattern == ""
    assert box.decide("git status", rule).verdict is Answer.ASK


async def test_exact_rules_are_kept_beside_each_other(tmp_path: Path, box: Box) -> None:
    disk = RealDisk()
    path = tmp_path / "exec-approvals.json"
    path.write_bytes(entry(id="old", argPattern="^fetch$", source="me", extra={"a": 1}))
    store = ExecApprovals(World(RealClock(), RealIds(), disk, RealSpawn()), path)
    await store.load()
    for command in ("git status", "git log", "git status"):
        offer = box.decide(command).always
        await store.add_always("main", offer.patterns, arguments=offer.arguments)
    kept = json.loads(path.read_text())["agents"]["main"]["allowlist"]
    assert [item["argPattern"] for item in kept] == [
        "^fetch$", exactly(("status",)), exactly(("log",)),
    ]  # fmt: skip
    assert kept[0]["source"] == "me" and kept[0]["extra"] == {"a": 1}
    rules = store.policy_for("main").rules
    assert box.decide("git log", *rules).verdict is Answer.ALLOW
    assert box.decide("git push", *rules).verdict is Answer.ASK
    disk.close()
