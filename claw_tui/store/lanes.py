"""Lane gauges: the newest numbers, a short ring of load samples for the sparkline, and the runs in
the lanes."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from claw_tui.store.wire import Json, flag, num, objs, text, texts

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


class LaneRun(Struct, frozen=True):
    """A run that goes on or waits."""

    id: str
    session: str = ""
    lane: str = ""
    state: str = ""
    since_ms: int = 0
    """When it came into this state, ms since the epoch."""
    parent: str = ""
    behind: tuple[str, ...] = ()
    """Runs that go before it."""

    @property
    def group(self) -> str:
        return self.state if self.state in ("queued", "parked") else "running"


class Lanes(Struct):
    lanes: dict[str, Lane] = field(default_factory=dict)
    paused: bool = False
    runs: list[LaneRun] = field(default_factory=list)

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
        if isinstance(payload.get("runs"), list):
            self.runs = [_run_from(raw) for raw in objs(payload.get("runs"))]

    def ordered(self) -> list[LaneRun]:
        """What goes on, what waits in the order of its turn, what is parked."""
        groups = ("running", "queued", "parked")
        return sorted(
            self.runs,
            key=lambda run: (groups.index(run.group), run.lane, len(run.behind), run.since_ms),
        )

    def place(self, run: LaneRun) -> int:
        """Its place in its queue: how many that wait as well go before it."""
        waiting = {other.id for other in self.runs if other.group == "queued"}
        return len(waiting.intersection(run.behind))

    @property
    def active(self) -> int:
        return sum(lane.active for lane in self.lanes.values())

    @property
    def queued(self) -> int:
        return sum(lane.queued for lane in self.lanes.values())

    @property
    def parked(self) -> int:
        return sum(lane.parked for lane in self.lanes.values())


def _run_from(raw: Json) -> LaneRun:
    return LaneRun(
        text(raw, "runId"),
        text(raw, "sessionKey"),
        text(raw, "lane"),
        text(raw, "state"),
        num(raw, "sinceMs"),
        text(raw, "parentId"),
        texts(raw, "waitingBehind"),
    )


def sparkline(values: list[int], width: int, bars: str = BARS) -> str:
    """The last `width` samples as bars, scaled to the largest one."""
    shown = values[-width:]
    top = max(shown, default=0)
    if top <= 0:
        return bars[0] * len(shown)
    last = len(bars) - 1
    return "".join(bars[(value * last + top - 1) // top] for value in shown)
