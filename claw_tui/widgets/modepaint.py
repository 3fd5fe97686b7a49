"""How the permission modes look as choices, and the second question before `full`. Pure."""

from __future__ import annotations

from textual.strip import Strip

from claw_tui.store.modes import MODES, SURE
from claw_tui.widgets.cells import spans, wrap
from claw_tui.widgets.choicepaint import Choice
from claw_tui.widgets.ink import Ink


def mode_choices(now: str) -> tuple[list[Choice], int]:
    """The four modes, and which of them is in force."""
    choices = [
        Choice(
            mode.name,
            f"{mode.name:<10} {mode.short}{'  (now)' if mode.name == now else ''}",
            mode.opens,
            danger=mode.name == "full",
        )
        for mode in MODES
    ]
    names = [mode.name for mode in MODES]
    return choices, names.index(now) if now in names else 1


def sure_lines(width: int, ink: Ink) -> list[Strip]:
    """What `full` means, once more."""
    out = [spans([])]
    for sentence in SURE[1]:
        out += [spans([(f" {text}", ink("warn", "b"))]) for text in wrap(sentence, width - 2)]
    return out
