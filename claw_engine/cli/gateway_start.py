"""`claw gateway start`: `claw gateway run` in the background, once it is ready or has failed.

Exit code 0 when one runs (also when it did already), 1 when it could not start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from claw_engine.cli.attach import state_dir_for_start
from claw_engine.cli.lock import holder, wait
from claw_engine.cli.output import say, say_json
from claw_engine.errors import ClawError
from claw_engine.paths import StateDir


class StartFailed(ClawError):
    """The engine ended, or is not ready in time."""

    exit_code = 1


def run(args: Namespace) -> int:
    state = StateDir(state_dir_for_start(args))
    running = holder(state.root)
    if running is not None:
        return _tell(args, state, running, started=False)
    state.ensure()
    state.logs_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    output = state.logs_dir / "gateway-start.log"
    process = _spawn(state.root, args.port, output)

    def settled() -> bool:
        return process.poll() is not None or _ready(state.root, process.pid)

    if not wait(settled, args.wait):
        raise StartFailed(
            f"The engine (pid {process.pid}) is not ready after {args.wait:g} s; it goes on.",
            hint=f"Look at {output} and `claw logs`.", details={"pid": process.pid},
        )  # fmt: skip
    if process.poll() is not None:
        why = _last_words(output)
        raise StartFailed(
            f"The engine did not start: {why}" if why else "The engine did not start.",
            hint=f"Its output is in {output}.",
            details={"exitCode": process.returncode, "output": str(output)},
        )
    return _tell(args, state, holder(state.root) or {}, started=True)


def _spawn(state_dir: Path, port: int | None, output: Path) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "claw_engine.cli", "gateway", "run", "--state-dir",
            str(state_dir)]  # fmt: skip
    if port is not None:
        argv += ["--port", str(port)]
    with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as sink:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True,
            cwd=state_dir,
        )  # fmt: skip


def _ready(state_dir: Path, pid: int) -> bool:
    found = holder(state_dir) or {}
    return found.get("pid") == pid and bool(found.get("door"))


def _last_words(output: Path) -> str:
    lines = output.read_text("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("claw: ") if lines else ""


def _tell(args: Namespace, state: StateDir, found: Mapping[str, object], *, started: bool) -> int:
    log = state.logs_dir / time.strftime("claw-%Y-%m-%d.log")
    answer = {
        "started": started,
        "pid": found.get("pid"),
        "port": found.get("port"),
        "door": found.get("door"),
        "stateDir": str(state.root),
        "log": str(log),
    }
    if args.json:
        say_json(answer)
    else:
        what = "started" if started else "runs already"
        say(f"engine {what}: pid {answer['pid']}, port {answer['port']}, log {log}")
    return 0
