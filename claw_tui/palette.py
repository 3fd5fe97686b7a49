"""Our commands for ctrl+p: every key of NAV, every session, every theme. Names are shown as
plain text. Imported when the palette opens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual import on
from textual.command import CommandInput, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input

from claw_tui.actions import Actions
from claw_tui.keymap import VIEWS
from claw_tui.keytable import KEYS
from claw_tui.store.cmdline import VERBS
from claw_tui.store.sanitize import line
from claw_tui.store.sessions import short_key

LONGEST = 100
"""Characters the palette takes: no command has a longer name."""
PAUSE_SECONDS = 0.05
"""One search for all keys that come faster than this."""


class ClawPalette(CommandPalette):
    """Textual's, searching once per pause instead of once per key, and never for long words:
    a flood of keys costs no more than the keys themselves."""

    _soon: Timer | None = None

    def on_mount(self) -> None:
        self.query_one(CommandInput).max_length = LONGEST

    @on(Input.Changed)
    def _search_soon(self, event: Input.Changed) -> None:
        event.stop().prevent_default()
        self._cancel_gather_commands()
        if self._soon is not None:
            self._soon.stop()
        self._soon = self.set_timer(PAUSE_SECONDS, self._search_now)

    def _search_now(self) -> None:
        self._soon = None
        self._stop_no_matches_countdown()
        self._gather_commands(self.query_one(CommandInput).value.strip())


class ClawCommands(Provider):
    def _all(self) -> list[tuple[str, str, Callable[[], object]]]:
        app = self.app
        assert isinstance(app, Actions)
        out: list[tuple[str, str, Callable[[], object]]] = [
            (f"{key.label}  ({key.shown})", key.help, partial(app.run_action, key.action))
            for key in KEYS
            if key.where == "nav" or key.id == "app.redraw"
        ]
        out += [
            (f"{verb.name}  (:{verb.name})", verb.summary, partial(app.command, verb.name))
            for verb in VERBS
            if not verb.key and (verb.optional or not verb.argument)
        ]
        out += [
            (f"view {number}: {name}", words or "open this view", partial(app.action_view, number))
            for number, name, words in VIEWS
        ]
        out += [
            (
                f"session {line(short_key(row.key))}",
                line(row.key),
                partial(app.open_session, row.key),
            )
            for row in app.store.sessions.ordered()[:200]
        ]
        out += [
            (f"theme {theme}", "change the colours", partial(app.command, f"theme {theme}"))
            for theme in app.theme_names()
        ]
        return out

    async def discover(self) -> Hits:
        for name, words, run in self._all():
            yield DiscoveryHit(Content(name), run, name, Content(words).markup)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, words, run in self._all():
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, Content(name), run, name, Content(words).markup)
