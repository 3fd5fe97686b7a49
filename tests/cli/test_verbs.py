"""The verbs against a real door; each is called as the shell would call it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from claw_engine.cli.__main__ import main
from claw_engine.cli.output import one_line, say, visible
from claw_engine.cli.status import duration
from claw_engine.client.door import MAX_REQUEST
from claw_engine.gateway.ports import Submission
from claw_engine.protocol.frames import MAX_PAYLOAD
from claw_engine.protocol.trace import TraceKind
from tests.gateway.rig import Rig, Tracer, approval


@dataclass
class Said:
    code: int
    out: str
    err: str


class Shell:
    """Runs `claw …` in a thread while the engine's loop goes on."""

    def __init__(self, rig: Rig, capture: pytest.CaptureFixture[str]) -> None:
        self.rig = rig
        self._capture = capture

    async def claw(self, *argv: str) -> Said:
        state = ("--state-dir", str(self.rig.state_dir.root))
        code = await asyncio.to_thread(main, [*argv, *state])
        return Said(code, *self._capture.readouterr())


async def submitted(rig: Rig) -> Submission:
    """The first message: a thread and a socket lie between, so there is no event to wait on."""
    async with asyncio.timeout(10):
        while not rig.intake.submitted:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)
    return rig.intake.submitted[0]


@pytest.fixture
async def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Shell]:
    rig = Rig(tmp_path)
    await rig.open()
    yield Shell(rig, capsys)
    await rig.close()


async def test_status_for_people_and_for_programs(shell: Shell) -> None:
    shell.rig.approvals.records["a1"] = approval()
    said = await shell.claw("status")
    assert said.code == 0
    lines = dict(line.split(maxsplit=1) for line in said.out.splitlines())
    assert lines["model"] == "rehearsal/stage (not an AI)"
    assert lines["mode"] == "guarded (approvals can be bypassed by allowed commands)"
    assert lines["approvals"].startswith("1 pending")
    found = json.loads((await shell.claw("status", "--json")).out)
    assert found["approvals"]["pending"] == 1


async def test_health_and_call(shell: Shell) -> None:
    assert (await shell.claw("health")).out.startswith("ok: engine 0.1.0")
    said = await shell.claw("call", "sessions.list", '{"limit": 1}')
    assert json.loads(said.out)["sessions"] == []


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        (("call", "no.such"), 1, "unknown method: no.such"),
        (("call", "chat.history", '{"x": 1}'), 1, "unexpected property 'x'"),
        (("call", "status", "{bad"), 2, "not JSON"),
        (("call", "status", "[]"), 2, "must be a JSON object"),
        (("approvals", "allow", "nope"), 1, "unknown approval id"),
        (("agent", "--message", "  "), 2, "message is empty"),
    ],
)
async def test_errors_are_one_clear_line(
    shell: Shell, argv: tuple[str, ...], code: int, text: str
) -> None:
    said = await shell.claw(*argv)
    assert said.code == code
    assert said.out == ""
    assert text in said.err
    assert len(said.err.splitlines()) == 1
    as_json = await shell.claw(*argv, "--json")
    assert text in json.loads(as_json.out)["error"]["message"]


async def test_no_engine_says_what_where_and_how(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--state-dir", str(tmp_path / "none")]) == 2
    err = capsys.readouterr().err
    assert f"No engine answers on {tmp_path / 'none'}" in err
    assert "claw gateway run --state-dir" in err


async def test_approvals_are_listed_and_answered(shell: Shell) -> None:
    shell.rig.approvals.records["a1"] = approval()
    listed = await shell.claw("approvals", "list")
    assert "run  du -sh *" in listed.out
    assert "why  to see" in listed.out
    denied = await shell.claw("approvals", "deny", "a1", "--reason", "no \x1b[2J")
    assert denied.out == "deny: du -sh *\n"
    record = shell.rig.approvals.records["a1"]
    assert (record.by, record.reason) == ("cli", "no \x1b[2J")
    assert (await shell.claw("approvals", "list")).out == "Nothing waits for you.\n"


async def test_agent_puts_the_answer_on_stdout_and_tools_on_stderr(shell: Shell) -> None:
    rig = shell.rig
    turn = asyncio.create_task(shell.claw("agent", "--message", "hi", "--session", "ops"))
    message = await submitted(rig)
    assert (message.session_key, message.source) == ("agent:main:ops", "cli")
    t = Tracer(message.run_id, message.session_key)
    other = Tracer("other", message.session_key)
    for event in (
        t(TraceKind.RUN_STARTED, model="rehearsal/stage", isAI=False),
        t(TraceKind.TOOL_STARTED, toolCallId="t", name="exec", args={"command": "ls \x1b[2J"}),
        other(TraceKind.TOOL_STARTED, toolCallId="t", name="read", args={"path": "elsewhere"}),
        t(TraceKind.TOOL_WAITING, toolCallId="t", approvalId="abcdef123", expiresAtMs=61_000),
        t(TraceKind.TOOL_DECIDED, toolCallId="t", approvalId="a", decision="deny", reason="no"),
        t(TraceKind.TOOL_ENDED, toolCallId="t", name="exec", status="error", exitCode=1,
          durationMs=1500),
    ):  # fmt: skip
        rig.bus.publish(event)
    rig.intake.finish(message.run_id, "the answer")
    said = await turn
    assert said.code == 0
    assert said.out == "the answer\n"
    assert said.err.splitlines() == [
        "model: rehearsal/stage (not an AI)",
        "tool: exec ls \\x1b[2J",
        "waiting for approval abcdef12 (1 min): exec ls \\x1b[2J",
        f"  claw approvals approve abcdef12 --state-dir {rig.state_dir.root}",
        f"  claw approvals deny abcdef12 --state-dir {rig.state_dir.root}",
        "decided: deny (no)",
        "tool: exec error, exit 1, 1.5 s",
    ]


async def test_a_failed_turn_exits_1_with_its_hint(shell: Shell) -> None:
    turn = asyncio.create_task(shell.claw("agent", "--message", "hi"))
    message = await submitted(shell.rig)
    shell.rig.intake.finish(message.run_id, "", "failed")
    said = await turn
    assert said.code == 1
    assert said.err == "claw: It broke. Mend it.\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本", "plain é 日本"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u202eb", "a\\u202eb"),
        ("tab\tline\n", "tab\tline\n"),
        ("a\x9bb\rc", "a\\x9bb\\rc"),
    ],
)
def test_outside_text_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_an_answer_that_is_piped_on_cannot_speak_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say("\x1b]0;pwn\x07 and words\tin columns")
    assert capsys.readouterr().out == "\\x1b]0;pwn\\x07 and words\tin columns\n"


def test_one_line_is_short() -> None:
    assert one_line("a\nb") == "a b"
    assert len(one_line("x" * 500)) == 160


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 s"), (-5, "0 s"), (61_000, "1 min 1 s"), (60_000, "1 min"),
     (11_520_000, "3 h 12 min"), (90_000_000, "1 d 1 h")],
)  # fmt: skip
def test_durations(ms: int, text: str) -> None:
    assert duration(ms) == text


async def test_approvals_without_an_action_lists_them(shell: Shell) -> None:
    shell.rig.approvals.records["a1"] = approval()
    said = await shell.claw("approvals")
    assert said.code == 0
    assert said == await shell.claw("approvals", "list")


async def test_a_request_larger_than_a_frame_is_refused_before_it_is_sent(shell: Shell) -> None:
    assert MAX_REQUEST == MAX_PAYLOAD
    words = json.dumps({"message": "x" * MAX_REQUEST, "sessionKey": "main"})
    said = await shell.claw("call", "chat.send", words)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert said.err.startswith("claw: The message is larger than 25 MB.")
    assert (await shell.claw("health")).code == 0


async def test_an_oversize_message_on_stdin(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("é" * (MAX_REQUEST // 2 + 1)))
    said = await shell.claw("agent", "-m", "-")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert said.err.startswith("claw: The message is larger than 25 MB.")
    assert shell.rig.intake.submitted == []
