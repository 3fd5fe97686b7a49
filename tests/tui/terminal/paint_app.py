"""A small program on the painting app: counts steps of its loop and paints every one of them.

Used by the pty tests: `python -m tests.tui.terminal.paint_app REPORT`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from textual.app import ComposeResult
from textual.widgets import Static

from claw_tui.terminal.display import PaintingApp
from claw_tui.terminal.guard import terminal_restored
from claw_tui.terminal.signals import leaving_signals


class PaintApp(PaintingApp[None]):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.worst = 0.0
        self.confirmed: list[int] = []

    def compose(self) -> ComposeResult:
        yield Static("", id="big", markup=False)

    def on_mount(self) -> None:
        self.gate.on_written = lambda serial, _backlog: self.confirmed.append(serial)
        self.run_worker(self.beat())

    async def beat(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            self.worst, last = max(self.worst, now - last - 0.01), now
            self.steps += 1
            width, height = self.size
            line = f"step {self.steps} ".ljust(max(1, width - 1), chr(97 + self.steps % 26))
            self.query_one("#big", Static).update("\n".join([line] * max(1, height - 1)))

    def on_key(self, event: object) -> None:
        key = getattr(event, "key", "")
        if key == "q":
            self.exit()
        elif key == "x":
            raise RuntimeError("asked to crash")
        elif key == "r":
            self.steps = 0
            self.worst = 0.0


async def main(report: Path) -> int:
    app = PaintApp()
    loop = asyncio.get_running_loop()
    with leaving_signals(loop, lambda number: app.exit(return_code=128 + number)):
        await app.run_async()
    facts = {
        "steps": app.steps,
        "worst": app.worst,
        "skipped": app.skipped_frames,
        "lost": app.lost_terminal,
        "answers": app.gate.answers,
        "confirmed": app.confirmed[-1:],
        "serial": app.gate.frame_serial,
    }
    if app.crash is not None:
        print(app.crash, file=sys.stderr)
    report.write_text(json.dumps(facts))
    return app.return_code or 0


if __name__ == "__main__":
    with terminal_restored():
        sys.exit(asyncio.run(main(Path(sys.argv[1]))))
