"""The main job in the real program: type, watch, decide, read the answer; asserted on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from claw_engine.world import RealDisk
from tests.e2e.consoles import (
    BIN,
    back_to_typing,
    console,
    decide,
    open_queue,
    plain_env,
    quiet,
    say,
)
from tests.support.engines import transcript_of

pytestmark = pytest.mark.e2e

SIZES = [(80, 24), (120, 40)]


def results(state: Path) -> list[dict[str, Any]]:
    """The tool results in the main session's transcript."""
    return [
        line["message"] for line in transcript_of(state)
        if line["type"] == "message" and line["message"]["role"] == "toolResult"
    ]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_allow_once_runs_it_and_the_answer_arrives(tmp_path: Path, size: tuple[int, int]) -> None:
    state, proof = tmp_path / "state", tmp_path / "proof"
    with console(state, size) as terminal:
        say(terminal, f"run: touch {proof}")
        terminal.wait_for("waits for you")
        assert not proof.exists()
        open_queue(terminal)
        decide(terminal, "y", "nothing waits for you")
        terminal.send("\x1b")
        terminal.wait_for("finished and")
        assert proof.exists()
    assert results(state)[0]["isError"] is False


@pytest.mark.parametrize("size", SIZES)
def test_deny_and_deny_with_a_reason(tmp_path: Path, size: tuple[int, int]) -> None:
    state, proof = tmp_path / "state", tmp_path / "proof"
    with console(state, size) as terminal:
        say(terminal, f"run: touch {proof}")
        terminal.wait_for("waits for you")
        open_queue(terminal)
        decide(terminal, "n", "nothing waits for you")
        back_to_typing(terminal)
        say(terminal, f"run: touch {proof}.2")
        terminal.wait_for("waits for you")
        open_queue(terminal)
        decide(terminal, "r", "because")
        terminal.send("please not here")
        terminal.wait_for("please not here")
        terminal.send("\r")
        terminal.wait_for("nothing waits for you")
        terminal.send("\x1b")
        terminal.wait_for("please not here")
        assert not proof.exists()
    denied = results(state)
    assert [message["isError"] for message in denied] == [True, True]
    assert "please not here" in json.dumps(denied[1])


@pytest.mark.parametrize("size", SIZES)
def test_always_shows_its_pattern_and_then_asks_no_more(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    state = tmp_path / "state"
    with console(state, size) as terminal:
        say(terminal, "run: uname -s")
        terminal.wait_for("waits for you")
        open_queue(terminal)
        decide(terminal, "w", "Allow more than once?")
        terminal.send("jjjjj")  # from this command for 15 minutes to the rule
        terminal.wait_for("From now on these run without asking")
        decide(terminal, "y", "nothing waits for you")
        back_to_typing(terminal)
        say(terminal, "run: uname -m")
        terminal.wait_for(os.uname().machine)
    rules = json.loads(RealDisk().read_bytes(state / "exec-approvals.json"))
    assert [r["pattern"] for r in rules["agents"]["main"]["allowlist"]] == ["/usr/bin/uname"]
    assert len(results(state)) == 2


def test_holding_y_over_ten_cards_decides_at_most_the_armed_one(tmp_path: Path) -> None:
    state = tmp_path / "state"
    folder = tmp_path / "marks"
    folder.mkdir()
    with console(state, (120, 40)) as terminal:
        commands = " || ".join(f"touch {folder}/{n}" for n in range(10))
        say(terminal, f"tools: {commands}")
        terminal.wait_for("10 wait")
        open_queue(terminal)
        for _ in range(5):  # on a busy machine the card may not be armed yet: then none is decided
            quiet()
            for _ in range(45):  # 1.5 s of auto-repeat at 30 Hz
                terminal.send("y")
                quiet(1 / 30)
            quiet(0.3)
            if "10 wait" not in terminal.text():
                break
        assert len(list(folder.iterdir())) <= 1
        terminal.wait_for("9 wait")


def test_with_output_stalled_y_decides_nothing(tmp_path: Path) -> None:
    state, proof = tmp_path / "state", tmp_path / "proof"
    with console(state) as terminal:
        say(terminal, f"run: touch {proof}")
        terminal.wait_for("waits for you")
        terminal.stall()
        terminal.send("\x1bOQ")
        for _ in range(6):
            quiet(0.5)
            terminal.send("y")
        terminal.unstall()
        terminal.wait_for("RUN")
        assert not proof.exists()
        decide(terminal, "y", "nothing waits for you")


def test_typing_never_decides(tmp_path: Path) -> None:
    """AP-09: the request pops up while the operator types; nothing typed or pasted decides."""
    state, proof = tmp_path / "state", tmp_path / "proof"
    with console(state) as terminal:
        say(terminal, f"run: touch {proof}")
        terminal.send("yo \r y")
        terminal.wait_for("waits for you")
        quiet()
        terminal.send("y\r ")
        terminal.send("\x1b[200~y\ny\n\x1b[201~")
        quiet()
        assert not proof.exists()
        assert "⏸1" in terminal.text().replace("⏸ 1 wait", "⏸1")


def test_kill_9_and_start_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with console(state) as terminal:
        say(terminal, "think: remember this sentence")
        terminal.wait_for(lambda screen: screen.count("remember this sentence") > 1)
        say(terminal, "run: uname")
        terminal.wait_for("waits for you")
        terminal.process.kill()
        terminal.wait_exit()
    with console(state) as terminal:
        screen = terminal.wait_for(
            lambda screen: "remember this sentence" in screen and "Interrupted" in screen
        )
        assert "⏸" not in screen


def test_a_closed_terminal_lets_the_run_finish_and_the_next_console_shows_it(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    with console(state) as terminal:
        say(terminal, "long: 200 60")
        terminal.wait_for("streaming")
        terminal.hang_up()
        with console(state) as second:
            assert second.process.pid != terminal.process.pid
            second.wait_for(lambda screen: "done" in screen or "200" in screen, 30)
        assert terminal.wait_exit(30) != 0
    texts = [
        "".join(block.get("text", "") for block in line["message"]["content"])
        for line in transcript_of(state)
        if line["type"] == "message" and line["message"]["role"] == "assistant"
    ]
    assert len(texts) == 1
    assert len(texts[0].split()) >= 200


def test_sigterm_restores_the_terminal_and_tells_the_code(tmp_path: Path) -> None:
    with console(tmp_path / "state") as terminal:
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait_exit() == 128 + signal.SIGTERM
        assert terminal.line_settings() == terminal.before
        for off in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?2004l", b"\x1b[?1006l"):
            assert off in terminal.raw[-4000:]


def test_the_second_console_attaches(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with console(state) as first, console(state, (120, 40)) as second:
        say(second, "think: said in the second")
        first.wait_for("said in the second")


def test_first_start_beside_an_existing_state_directory_asks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".openclaw").mkdir(parents=True)
    (home / ".openclaw" / "openclaw.json").write_text("{}")
    done = subprocess.run(
        [str(BIN / "claw"), "gateway", "run"], env=plain_env(home), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--state-dir" in done.stderr
    assert [p.name for p in (home / ".openclaw").iterdir()] == ["openclaw.json"]
