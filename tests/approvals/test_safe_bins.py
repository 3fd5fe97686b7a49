"""Safe bins: filters that may run on what is piped in, and nothing else of them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_engine.approvals.evaluate import SAFE_BIN, Answer
from claw_engine.approvals.policy import ExecPolicy, Rule
from claw_engine.approvals.safe_bins import PROFILES, configured, objection
from tests.approvals.conftest import Box

LISTED = ["sort", "grep", "jq", "head", "wc", "uniq", "tail", "tr", "cut"]
CAT = Rule("c", "/usr/bin/cat")


def policy(*names: str) -> ExecPolicy:
    return ExecPolicy(rules=(CAT,), safe_bins=configured(names or LISTED))


AP_11 = [
    "sort --compress-prog=sh", "sort --outp=x", "sort -ofoo", "sort -T /tmp", "grep -rf x",
    "grep --fil=/etc/passwd a", "grep --rec a", "jq -nr env", "jq -L /tmp .", "head /etc/passwd",
    "wc --files0-f=x", "busybox sort", "sort -- -o x",
    "jq -nL. .", "jq -n '$ENV'", "jq -n '$ ENV'", "jq -n '$#\n ENV'", "jq -n '\"\\(env)\"'",
    "jq -L. .", "jq -n 'include \"x\"; .'", "jq --rawfile a x .", "jq --slurpfile a x .",
    "jq -nf x", "jq -f x",
    "jq '$__prog_args'", "jq . x", "jq -- . x", "jq 'input_filename'", "jq -n 'get_search_list'",
    "sort -k -o x", "sort -t -- -o x", "sort --random-source=x", "sort -uofoo", "sort x -o y",
    "grep --include=x -r y", "grep -e x y", "grep -ve x y", "grep -fx", "grep --devices=read x",
    "uniq - x", "uniq -- - x", "head -- x", "tail -f", "tail -n 1 -F", "tail -5f", "tr a b c",
    "cut -d -- -f1 x", "wc -- x", "head -n", "grep", "cut --output-delimiter=/etc/x -f1",
]  # fmt: skip


@pytest.mark.parametrize("command", AP_11)
def test_ap_11_abbreviated_and_file_options_ask(box: Box, command: str) -> None:
    """AP-11: what the profile does not list in full asks."""
    box.program("bin/busybox")
    for whole in (command, f"cat | {command}", f"nice {command}"):
        assert box.decide(whole, policy=policy()).verdict is Answer.ASK, whole


@pytest.mark.parametrize(
    "command",
    ["sort -u", "grep -c foo", "cat x | sort -rn -k 2,2 | head -n 5", "cat | grep -ve foo | wc -l",
     "nice sort", "grep '^a.*b$'", "head -5 -"],
)  # fmt: skip
def test_ap_11_filters_pass(box: Box, command: str) -> None:
    verdict = box.decide(command, policy=policy())
    assert verdict.verdict is Answer.ALLOW, verdict.reasons
    assert verdict.enforced_argv
    assert SAFE_BIN in [segment.rule for segment in verdict.segments]


def test_nobody_opted_in(box: Box) -> None:
    assert configured(()) is None
    assert box.decide("sort -u").verdict is Answer.ASK
    assert box.decide("cut -f1", policy=policy("sort")).verdict is Answer.ASK


@pytest.mark.parametrize(
    ("name", "arguments", "fits"),
    [
        ("jq", "'.[] | .name'", True), ("jq", "-r --arg a b .x", True),
        ("jq", "-n input", True),
        ("jq", "'$ENV.HOME'", False), ("jq", "'\"\\(env)\"'", False),
        ("jq", ". file", False),
        ("jq", "-f x", False), ("jq", "--from-file x", False),
        ("jq", "'import \"a\" as a; .'", False),
        ("jq", "--arg a", False), ("jq", "--slurpfile a b .", False),
        ("jq", "--rawfile a b", False),
        ("tr", "a-z A-Z", True), ("tr", "-d /", True), ("tr", "a b c", False), ("tr", "", False),
        ("tail", "-n +3", True), ("tail", "-f", False), ("tail", "--follow", False),
        ("tail", "--retry", False), ("uniq", "-c", True), ("uniq", "in out", False),
        ("cut", "-d: -f1", True), ("cut", "-f 1 file", False), ("cut", "--output-d=, -f1", False),
        ("grep", "-e a b", False), ("grep", "a -e b", False), ("grep", "-m1 -- -x", True),
        ("grep", "--include=x a", False), ("grep", "-dr a", False), ("grep", "-cf x", False),
        ("grep", "-A", False), ("grep", "--regexp=~/x", False), ("sort", "+1", False),
        ("sort", "-k", False), ("sort", "-t / -k2", True), ("sort", "-to", True),
        ("sort", "-nro x", False), ("sort", "--key=/etc", False), ("head", "-n", False),
        ("head", "-c5 --", True), ("head", "-٣", False), ("wc", "--total=never", True),
    ],
)  # fmt: skip
def test_profiles(name: str, arguments: str, fits: bool) -> None:
    words = tuple(shlex.split(arguments))
    assert (objection(name, words, PROFILES[name]) is None) == fits


@given(st.sampled_from(sorted(PROFILES)), st.text("abcdefghijklmnopqrstuvwxyz0-", min_size=1))
def test_an_unlisted_long_option_never_passes(name: str, text: str) -> None:
    option = f"--{text}"
    profile = PROFILES[name]
    if option in profile.flags or option in profile.values:
        return
    assert objection(name, (option, "a"), profile) or option == "--"
    assert objection(name, (f"{option}=a",), profile)


def test_only_a_trusted_directorys_own_program(box: Box) -> None:
    box.program("bin/sort")
    assert box.decide("sort -u", policy=policy()).verdict is Answer.ASK
    assert box.decide("/usr/bin/sort -u", policy=policy()).verdict is Answer.ALLOW
    (box.bin / "sort").unlink()
    (box.bin / "sort").symlink_to(box.program("opt/multi"))
    assert box.decide("sort -u", policy=policy()).verdict is Answer.ASK
    trusting = ExecPolicy(safe_bins=configured(["mine"], [str(box.bin)], {"mine": {}}))
    box.program("bin/mine")
    verdict = box.decide("mine", policy=trusting)
    assert verdict.verdict is Answer.ASK
    assert "could have written" in verdict.segments[0].why


def test_profiles_of_ones_own() -> None:
    own = {"sort": {"allowedValueFlags": ["-k", "-o"], "deniedFlags": ["-o"], "maxPositional": 1},
           "odd": {"maxPositional": "1"}, "no": 5}  # fmt: skip
    safe = configured(["sort", "odd", "no", "nobody"], ["relative", "/opt/x/"], own)
    assert safe is not None
    assert safe.ignored == ("odd", "no", "nobody")
    assert "/opt/x" in safe.folders and "relative" not in safe.folders
    assert safe.objection("sort", "/usr/bin", ("-k", "2", "word")) is None
    assert safe.objection("sort", "/usr/bin", ("-o", "x"))
    assert safe.objection("sort", "/usr/bin", ("-u",)), "ours does not show through"
    assert safe.objection("sort", "/usr/bin", ("./file",))
    assert safe.objection("sort", "/tmp", ())


def test_a_name_without_a_profile_is_named(box: Box) -> None:
    verdict = box.decide("uname", policy=policy("uname"))
    assert "no profile" in verdict.segments[0].why


@pytest.mark.parametrize("name", ["python3", "sh", "awk", "env", "xargs", "busybox"])
def test_no_profile_makes_an_interpreter_safe(box: Box, name: str) -> None:
    own = {name: {"maxPositional": 9, "allowedFlags": ["-c"]}}
    safe = ExecPolicy(safe_bins=configured([name], [], own))
    assert box.decide(f"{name} x", policy=safe).verdict is Answer.ASK
