"""Lane gauges: the newest numbers and a short ring of load samples for the sparkline."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from claw_tui.store.wire import Json, flag, num, objs, text

SAMPLES = 20
BARS = "▁▂▃▄▅▆▇█"


class Lane(Struct):
    name: str
    width: int = 0
    active: int = 0
    queued: int = 0
    parked: int = 0
    wait_ms: int = 0
    load: deque[int] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    """active + queued at each report of the engine."""


class Lanes(Struct):
    lanes: dict[str, Lane] = field(default_factory=dict)
    paused: bool = False

    def apply(self, payload: Json) -> None:
        """Take a `lanes` event, a lanes.status payload or the lanes of a status payload."""
        self.paused = flag(payload, "paused", self.paused)
        for raw in objs(payload.get("lanes")):
            name = text(raw, "lane")
            lane = self.lanes.setdefault(name, Lane(name))
            lane.width, lane.active = num(raw, "width"), num(raw, "active")
            lane.queued, lane.parked = num(raw, "queued"), num(raw, "parked")
            lane.wait_ms = num(raw, "lastWaitMs")
            lane.load.append(lane.active + lane.queued)

    @property
    def active(self) -> int:
        return sum(lane.active for lane in self.lanes.values())

    @property
    def queued(self) -> int:
        return sum(lane.queued for lane in self.lanes.values())

    @property
    def parked(self) -> int:
        return sum(lane.parked for lane in self.lanes.values())


def sparkline(values: list[int], width: int, bars: str = BARS) -> str:
    """The last `width` samples as bars, scaled to the largest one."""
    shown = values[-width:]
    top = max(shown, default=0)
    if top <= 0:
        return bars[0] * len(shown)
    last = len(bars) - 1
    return "".join(bars[(value * last + top - 1) // top] for value in shown)
