"""One command in the background: its name, its state and what a look at it says.

A value over a `Running`; who may see it and how long it is kept is the table's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from claw_engine.tools.exec import results
from claw_engine.tools.exec.job import Ran
from claw_engine.tools.exec.roster import Listed
from claw_engine.tools.exec.running import Running

TAIL_CHARS = 2_000
"""Characters of output shown with a state (OpenClaw 2026.2.26)."""

RETRY_MS = (5_000, 10_000, 30_000, 60_000)
"""When to look again, by how often nothing new was seen (agent digest §5.4)."""

_LABEL_CHARS = 120

OnEnd = Callable[[Ran], Awaitable[None]]


class Background(Struct, eq=False):
    """`stopped_by` is why we stopped it; "" = it ends by itself."""

    id: str
    session_key: str
    command: str
    cwd: str
    running: Running
    on_end: OnEnd | None = None
    stopped_by: str = ""
    _idle_polls: int = field(default=0)

    @property
    def ended(self) -> bool:
        return self.running.ran is not None

    @property
    def ended_ms(self) -> int | None:
        """Wall time of its end."""
        return self.running.ended_ms

    @property
    def status(self) -> str:
        """running, completed, failed or killed."""
        ran = self.running.ran
        if ran is None:
            return "running"
        if ran.stopped:
            return "killed"
        return "completed" if ran.returncode == 0 and not ran.timed_out else "failed"

    @property
    def ending(self) -> str:
        """The sentence about its state, for the model."""
        ran = self.running.ran
        if ran is None:
            return "Process still running."
        _, words, _ = results.how_ended(ran, self.running.job.timeout_s)
        said = f"Process exited with code {ran.returncode}." if ran.returncode >= 0 else ""
        if ran.returncode != 0 and words and not words.startswith("("):
            said = f"{said} {words}.".strip()
        for what, names in (("Still running", ran.left_running), ("Escaped", ran.escaped)):
            if names:
                said += f" {what}: {', '.join(names)}."
        return said

    @property
    def label(self) -> str:
        """The command on one line, cut."""
        text = " ".join(self.command.split())
        return text if len(text) <= _LABEL_CHARS else text[: _LABEL_CHARS - 1] + "…"

    @property
    def tail(self) -> str:
        return self.running.tail.text()[-TAIL_CHARS:]

    def duration_ms(self, now_ms: int) -> int:
        return (self.ended_ms if self.ended_ms is not None else now_ms) - self.running.started_ms

    def drain(self) -> tuple[str, int | None]:
        """Output since the last look, and in how many ms to look again (None = it has ended)."""
        text, left_out = self.running.drain()
        if left_out:
            text = f"[… {left_out:,} characters before this were dropped, see log …]\n{text}"
        if self.ended:
            return text, None
        self._idle_polls = 0 if text else min(self._idle_polls + 1, len(RETRY_MS))
        return text, RETRY_MS[max(0, self._idle_polls - 1)]

    def fields(self, now_ms: int) -> dict[str, object]:
        """What `list` tells of it (gateway digest §5.3)."""
        ran = self.running.ran
        return {
            "sessionId": self.id,
            "status": self.status,
            "pid": self.running.pid,
            "startedAt": self.running.started_ms,
            "endedAt": self.ended_ms,
            "runtimeMs": self.duration_ms(now_ms),
            "lastOutputAt": self.running.last_output_ms,
            "cwd": self.cwd,
            "command": self.command,
            "name": self.label,
            "terminal": self.running.terminal is not None,
            "tail": self.tail,
            "truncated": bool(self.running.tail.left_out),
            **(results.exit_fields(ran) if ran is not None else {}),
        }

    def listed(self) -> Listed:
        """What is written down about it."""
        running = self.running
        return Listed(
            self.id, running.mark, self.session_key, self.command, self.cwd, running.started_ms
        )
