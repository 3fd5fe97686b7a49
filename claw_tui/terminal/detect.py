"""What the terminal can do, judged once from the environment. Pure.

Sources: NO_COLOR (no-color.org: set and not empty), COLORTERM and TERM conventions, and what was
measured with Textual 8.2 (16-colour terminals and NO_COLOR want an ANSI theme).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Colours(StrEnum):
    NONE = "none"
    ANSI16 = "16"
    ANSI256 = "256"
    TRUECOLOR = "truecolor"


class Terminal(Struct, frozen=True):
    """Facts about where we draw."""

    colours: Colours
    utf8: bool
    dumb: bool
    ssh: bool
    multiplexer: str
    """tmux, screen or empty."""

    @property
    def wants_ansi_theme(self) -> bool:
        return self.colours in (Colours.NONE, Colours.ANSI16)


def detect(env: Mapping[str, str], encoding: str) -> Terminal:
    """Facts from the environment and the locale's encoding name."""
    term = env.get("TERM", "")
    return Terminal(
        colours=_colours(env, term),
        utf8=encoding.lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig"),
        dumb=term in ("", "dumb", "unknown"),
        ssh=bool(env.get("SSH_CONNECTION") or env.get("SSH_TTY")),
        multiplexer="tmux" if env.get("TMUX") else "screen" if env.get("STY") else "",
    )


def _colours(env: Mapping[str, str], term: str) -> Colours:
    if env.get("NO_COLOR"):
        return Colours.NONE
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Colours.TRUECOLOR
    if term.endswith("-direct"):
        return Colours.TRUECOLOR
    if "256" in term or term.startswith(("tmux", "alacritty", "foot", "xterm-kitty")):
        return Colours.ANSI256
    return Colours.ANSI16
