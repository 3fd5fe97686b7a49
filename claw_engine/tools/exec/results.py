"""What the model reads after a command: output, how it ended, and why not when it did not run.

Pure over values. Sentences and `details` fields follow OpenClaw 2026.2.26.
"""

from __future__ import annotations

import signal

from claw_engine.tools.base import ToolResult
from claw_engine.tools.exec.job import Ran

NO_OUTPUT = "(no output)"
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127


def of(ran: Ran, cwd: str, timeout_s: float | None) -> ToolResult:
    """The result of a command that was started; an error unless it ended by itself."""
    status, ending, is_error = how_ended(ran, timeout_s)
    notes = [*([ran.warning] if ran.warning else ()), _output(ran)]
    if ending:
        notes.append(ending)
    if ran.left_running:
        notes.append(f"(Still running in the background: {', '.join(ran.left_running)})")
    if ran.escaped:
        notes.append(escaped(ran))
    details: dict[str, object] = {
        "status": status,
        **exit_fields(ran),
        "durationMs": ran.duration_ms,
        "cwd": cwd,
    }
    if ran.left_out:
        details["truncatedChars"] = ran.left_out
    if ran.left_running:
        details["leftRunning"] = list(ran.left_running)
    if ran.escaped:
        details["escaped"] = list(ran.escaped)
    return ToolResult("\n\n".join(notes), is_error=is_error, details=details)


def escaped(ran: Ran) -> str:
    """Who could not be stopped."""
    return (
        "(Escaped and still running, because they cleared their environment: "
        f"{', '.join(ran.escaped)})"
    )


def running(
    session_id: str, pid: int, started_ms: int, cwd: str, output: str, warning: str = ""
) -> ToolResult:
    """The command has moved to the background; `output` is what it wrote last."""
    note = (
        f"Command still running (session {session_id}, pid {pid}). "
        "Look after it with the process tool: poll, log, write, send-keys, kill …"
    )
    parts = [warning, output.rstrip("\n"), note]
    details = {
        "status": "running",
        "sessionId": session_id,
        "pid": pid,
        "startedAt": started_ms,
        "cwd": cwd,
        "tail": output,
    }
    return ToolResult("\n\n".join(part for part in parts if part.strip()), details=details)


def exit_fields(ran: Ran) -> dict[str, object]:
    """`exitCode`, and `exitSignal` after a signal."""
    if ran.returncode >= 0:
        return {"exitCode": ran.returncode}
    return {"exitCode": None, "exitSignal": _signal_name(-ran.returncode)}


def denied_by_policy(reasons: tuple[str, ...], cwd: str) -> ToolResult:
    """The policy refuses without asking anyone."""
    why = "; ".join(reasons) or "the policy allows no command"
    text = f"exec denied by policy: {why}. Nobody was asked; the command was not run."
    return ToolResult(text, is_error=True, details={"status": "denied", "cwd": cwd})


def changed(changes: tuple[str, ...], cwd: str) -> ToolResult:
    """What was approved was no longer what would have run, twice in a row."""
    text = (
        f"Denied: changed since you approved ({'; '.join(changes)}), and again after a fresh "
        "request. The command was not run. Stop changing these files while a request is waiting."
    )
    details = {"status": "denied", "reason": "changed", "cwd": cwd}
    return ToolResult(text, is_error=True, details=details)


def _output(ran: Ran) -> str:
    text = ran.output.rstrip("\n")
    if not text.strip():
        text = NO_OUTPUT
    if ran.left_out:
        text = f"[… {ran.left_out:,} characters before this were dropped …]\n{text}"
    return text


def how_ended(ran: Ran, timeout_s: float | None) -> tuple[str, str, bool]:
    """Status word, sentence, and whether it counts as an error."""
    if ran.aborted is not None:
        return "aborted", f"Command stopped: the run was aborted ({ran.aborted.value}).", True
    if ran.timed_out:
        return "failed", f"Command timed out after {timeout_s or 0:g} seconds", True
    if ran.stopped:
        return "killed", "Command stopped", True
    if ran.returncode < 0:
        return "failed", f"Command aborted by signal {_signal_name(-ran.returncode)}", True
    match ran.returncode:
        case 0:
            return "completed", "", False
        case code if code == _NOT_FOUND:
            return "failed", "Command not found (exit code 127)", True
        case code if code == _NOT_EXECUTABLE:
            return "failed", "Command not executable (permission denied, exit code 126)", True
        case code:
            return "completed", f"(Command exited with code {code})", False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
