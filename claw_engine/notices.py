"""What the operator should know: every notice goes through here, the lasting ones are kept.

A notice replaces the one with its code; level "clear" takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from claw_engine.config.load import Loaded
from claw_engine.config.problems import ProblemKind, format_path
from claw_engine.events import Event, EventBus, Notice
from claw_engine.gateway.broadcast import notice_payload
from claw_engine.world import Clock

CLEAR = "clear"


class NoticeBoard:
    """In front of the bus: publishes everything, remembers sticky notices."""

    def __init__(self, clock: Clock, bus: EventBus) -> None:
        self._clock = clock
        self._bus = bus
        self._sticky: dict[str, Notice] = {}

    def publish(self, event: Event) -> None:
        """Publish any event; a sticky notice stays on the board."""
        if isinstance(event, Notice):
            if event.level == CLEAR:
                if self._sticky.pop(event.code, None) is None:
                    return
            elif event.sticky:
                self._sticky[event.code] = event
        self._bus.publish(event)

    def tell(
        self,
        code: str,
        level: str,
        title: str,
        *,
        text: str = "",
        hint: str = "",
        sticky: bool = False,
    ) -> None:
        """Publish a notice that happens now."""
        self.publish(Notice(code, level, title, hint, text, sticky, self._clock.now_ms()))

    def clear(self, code: str) -> None:
        """The matter of this code is settled."""
        self.tell(code, CLEAR, "")

    def codes(self) -> frozenset[str]:
        """Codes of the notices that stand."""
        return frozenset(self._sticky)

    def current(self) -> Sequence[Mapping[str, object]]:
        """The notices that stand, oldest first, as the wire has them."""
        return [notice_payload(notice) for notice in self._sticky.values()]


def problem_notices(loaded: Loaded) -> Iterator[Notice]:
    """What is to be said about a configuration that was just read."""
    if loaded.banner is not None:
        banner = loaded.banner
        text = "\n".join(part for part in (banner.text, banner.diff) if part)
        yield Notice(banner.code, "error", banner.title, banner.hint, text, sticky=True)
    idle = [problem for problem in loaded.problems if problem.kind is ProblemKind.IDLE_KEY]
    if idle:
        names = ", ".join(format_path(problem.path) for problem in idle[:3])
        more = f" and {len(idle) - 3} more" if len(idle) > 3 else ""
        yield Notice(
            f"config:{ProblemKind.IDLE_KEY}", "info",
            f"This version does not act on these settings: {names}{more}.",
            "They are kept as they are; docs/configuration.md lists what is read.",
            "\n".join(problem.sentence() for problem in idle), sticky=True,
        )  # fmt: skip
    for problem in loaded.problems:
        if problem.fatal or problem.kind is ProblemKind.IDLE_KEY:
            continue
        title = problem.sentence()
        level = "warn" if problem.severity == "warning" else "error"
        code = f"config:{problem.kind.value}:{format_path(problem.path)}"
        yield Notice(code, level, title, sticky=True)
