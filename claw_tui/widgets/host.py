"""What widgets may ask of the application, so that they need not import it."""

from __future__ import annotations

from typing import Protocol, cast

from textual.dom import DOMNode

from claw_tui.keymap import Facts
from claw_tui.store.store import Store
from claw_tui.widgets.ink import Ink


class UiClock(Protocol):
    """Wall time in ms and a monotonic time in seconds."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


class Host(Protocol):
    store: Store
    ink: Ink
    clock: UiClock

    @property
    def rules_serial(self) -> tuple[int, int]:
        """Differs whenever other style rules hold than before."""
        ...

    def facts(self) -> Facts: ...

    def refuse(self, why: str) -> None:
        """Say in the hint line why a key did nothing."""
        ...

    @property
    def refusal(self) -> str: ...


def host(node: DOMNode) -> Host:
    return cast(Host, node.app)
