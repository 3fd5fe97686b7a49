"""From nothing to the first frame, and what is loaded only after it: the theme before anything is
styled, every widget styled once, the pages that are likely to be opened made while nobody waits.
Knows nothing of what the frame shows."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from claw_tui.actions import Actions
from claw_tui.themes import DEFAULT_ANSI, DEFAULT_DARK

SETTLE_SECONDS = 0.25
"""From the first frame until what waited for it begins: the second one, with what the engine
answered, comes in between."""
AHEAD_SECONDS = 1.0
"""From then until our own pages are loaded: the engine's port comes first."""

FALLBACK_VARIABLES = {
    "claw-line": "#444c5c",
    "claw-line-focus": "#7aa2f7",
    "claw-line-warn": "#e6b455",
    "claw-bar": "#1a2130",
    "claw-text": "#d5dbe8",
    "claw-faint": "#6b7488",
    "claw-muted": "#98a2b3",
    "claw-key": "#56c7c0",
}
"""For themes that are not ours."""


class Starting(Actions):
    """`on_settled` is called when the first screen stands."""

    _first_theme = ""
    _restyled = 0
    on_settled: Callable[[], None] = staticmethod(lambda: None)

    # ── before the first frame ──────────────────────────────────────────────────────────────

    def begin_with(self, theme: str) -> None:
        """Have the theme before anything is styled, and read no other theme's file."""
        wanted = theme or (DEFAULT_ANSI if self.no_color else DEFAULT_DARK)
        self.load_themes(wanted)
        if wanted not in self.available_themes:
            self.load_themes()
        if wanted not in self.available_themes:
            self.store.notice("warn", f"no theme {wanted}", hint=":theme NAME")
            wanted = DEFAULT_DARK if DEFAULT_DARK in self.available_themes else self.theme
        self.set_reactive(Starting.theme, wanted)
        self.stylesheet.set_variables(self.get_css_variables())
        self._first_theme = wanted

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return FALLBACK_VARIABLES

    def refresh_css(self, animate: bool = True) -> None:
        """Not when the application mounts: Textual would parse and apply everything twice."""
        first, self._first_theme = self._first_theme, ""
        if first != self.theme:
            self._restyled += 1
            super().refresh_css(animate=animate)

    @property
    def rules_serial(self) -> tuple[int, int]:
        """Differs whenever other style rules hold than before."""
        files = sum(not source.is_defaults for source in self.stylesheet.source.values())
        return self._restyled, files

    # ── after it ────────────────────────────────────────────────────────────────────────────

    def on_mount(self) -> None:
        self.call_after_refresh(_collect_garbage)

    def first_frame(self) -> None:
        self.go(self._after_first_frame)

    async def _after_first_frame(self) -> None:
        """What a start left out is not left to the first key that needs it: that one would wait
        as long as the start was spared."""
        await asyncio.sleep(SETTLE_SECONDS)
        self.on_settled()
        await asyncio.sleep(AHEAD_SECONDS)
        await asyncio.to_thread(_load_pages)  # in small shares of the interpreter
        await self.ready_queue()


def _load_pages() -> None:
    import claw_tui.palette  # brings Textual's own
    import claw_tui.screens.approvals
    import claw_tui.screens.ask
    import claw_tui.screens.help  # noqa: F401 - only to have them loaded


def _collect_garbage() -> None:
    """From the first paint on; what was loaded until then lives as long as we do."""
    gc.freeze()
    gc.enable()
