"""The real program with one fault built in; F9 makes it strike.

Used by the pty tests: `python -m tests.tui.terminal.crash_app FAULT OPTIONS…`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from textual.events import Event
from textual.widget import Widget

from claw_tui import app as app_module
from claw_tui import cli

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
SECRET = "local-variable-0007"


class Broken(Widget):
    def render(self) -> str:
        raise RuntimeError("broken in render")


class FaultyApp(app_module.ClawApp):
    CSS_PATH = str(Path(app_module.__file__).with_name("screens") / "main.tcss")

    async def on_event(self, event: Event) -> None:
        if getattr(event, "key", "") == "f9":
            await self.strike(SECRET)
        await super().on_event(event)

    async def strike(self, secret: str) -> None:
        match FAULT:
            case "worker":
                self.run_worker(self.breaks(secret))
            case "render":
                await self.screen.mount(Broken())
            case _:
                await self.breaks(secret)

    async def breaks(self, secret: str) -> None:
        assert secret
        raise RuntimeError(f"broken in {FAULT}")


if __name__ == "__main__":
    app_module.ClawApp = FaultyApp  # type: ignore[misc]  # the fault is built in here
    sys.exit(cli.main(sys.argv[2:]))
