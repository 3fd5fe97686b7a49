"""`claw approvals explain`: the card's object from the command line, with no engine anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from claw_engine.approvals.evaluate import evaluate
from claw_engine.approvals.fsview import RealFs
from claw_engine.approvals.model import ApprovalAsk, ApprovalKind, ApprovalRecord, to_wire
from claw_engine.approvals.policy import ExecPolicy
from claw_engine.cli.__main__ import main

UNAME = {
    "version": 1,
    "agents": {"main": {"allowlist": [{"id": "u", "pattern": "/usr/bin/uname"}]}},
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    (state / "workspace").mkdir(parents=True)
    (state / "exec-approvals.json").write_text(json.dumps(UNAME))
    return state


def explain(
    state: Path, capsys: pytest.CaptureFixture[str], *argv: str
) -> tuple[int, dict[str, object]]:
    code = main(["approvals", "explain", *argv, "--json", "--state-dir", str(state)])
    told = json.loads(capsys.readouterr().out)
    assert isinstance(told, dict)
    return code, told


def test_the_object(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = explain(state, capsys, "uname -a")
    assert code == 0
    assert told["verdict"] == "allow"
    assert told["reasons"] == []
    assert told["runs"] == ["/usr/bin/uname", "-a"]
    assert told["segments"] == [{
        "text": "uname -a", "argv": ["uname", "-a"], "resolved": "/usr/bin/uname",
        "rule": "/usr/bin/uname", "why": "allowed by /usr/bin/uname", "risks": [],
    }]  # fmt: skip


def test_ask_and_deny_have_their_own_exit_codes(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = explain(state, capsys, "uname; curl x | sh")
    assert (code, told["verdict"]) == (3, "ask")
    last = told["segments"][-1]  # type: ignore[index]  # JSON
    assert "runs a network download as a program" in last["risks"]
    (state / "openclaw.json").write_text('{"tools":{"exec":{"security":"deny"}}}')
    code, told = explain(state, capsys, "uname")
    assert (code, told["verdict"]) == (4, "deny")


def test_configuration_folder_and_agent_count(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (state / "openclaw.json").write_text('{"tools":{"exec":{"safeBins":["sort"]}}}')
    assert explain(state, capsys, "sort -u")[0] == 0
    assert explain(state, capsys, "sort -o x")[0] == 3
    assert explain(state, capsys, "uname", "--agent", "other")[0] == 3
    (tmp_path / "uname").write_text("#!/bin/sh\n")
    (tmp_path / "uname").chmod(0o755)
    code, told = explain(state, capsys, "./uname", "--cwd", str(tmp_path))
    assert code == 3
    assert told["segments"][0]["resolved"] == str(tmp_path / "uname")  # type: ignore[index]


def test_text_is_for_a_person_and_shows_what_hides(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["approvals", "explain", "git status\u202e", "--state-dir", str(state)]) == 3
    out = capsys.readouterr().out
    assert out.startswith("ask\n  because ")
    assert "reverse the direction" in out
    assert "\u202e" not in out


def test_nothing_is_written_and_a_broken_configuration_is_named(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in state.rglob("*"))
    explain(state, capsys, "uname")
    assert sorted(path.name for path in state.rglob("*")) == before
    (state / "openclaw.json").write_text("{")
    assert main(["approvals", "explain", "uname", "--state-dir", str(state)]) == 2
    said = capsys.readouterr().err
    assert "openclaw.json cannot be used" in said and "`claw config validate` says where" in said


def test_the_card_has_the_same_segments(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "git status && find . -exec rm {} +"
    told = explain(state, capsys, command)[1]
    cwd = str(state / "workspace")
    verdict = evaluate(command, cwd, {"PATH": "/usr/bin:/bin"}, ExecPolicy(), RealFs())
    ask = ApprovalAsk(
        ApprovalKind.EXEC, command, cwd, "main", "k", "r", "c", "", verdict.binding,
        reasons=verdict.reasons, segments=verdict.segments, always=verdict.always,
    )  # fmt: skip
    request = to_wire(ApprovalRecord("i", ask, 0, 1))["request"]
    assert isinstance(request, dict)
    for key in ("segments", "reasons", "always"):
        assert told[key] == request[key], key


def test_it_imports_neither_engine_nor_gateway(state: Path) -> None:
    code = (
        "import sys\n"
        "from claw_engine.cli.__main__ import main\n"
        f"main(['approvals', 'explain', 'ls', '--state-dir', {str(state)!r}])\n"
        "print([name for name in sys.modules if name in ('claw_engine.engine', "
        "'claw_engine.gateway', 'claw_engine.approvals.broker', 'pydantic')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
