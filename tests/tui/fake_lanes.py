"""Lanes of a scripted engine: their runs, and what the orders of view 6 do to them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.tui.fake_client import MAIN, NOW, TELEGRAM, FakeClient, Script, lane

WORDS = {
    "r1": (MAIN, "what's eating my disk?"),
    "r2": (TELEGRAM, "run the backup now"),
    "q1": (MAIN, "and then the [b]photos[/]"),
    "q2": (MAIN, "漢字 and \u202eevil"),
    "q3": (MAIN, "the last of them"),
}


class FakeLanes:
    """`waiting`: run ids in the order of their turn, behind r1."""

    def __init__(self) -> None:
        self.widths = {"main": 4, "cron": 1, "subagent": 8, "nested": 1}
        self.waiting = ["q1", "q2", "q3"]
        self.orders: list[tuple[str, dict[str, object]]] = []

    def payload(self) -> dict[str, object]:
        lanes = [lane(name, width) for name, width in self.widths.items()]
        lanes[0] = lane("main", self.widths["main"], 1, len(self.waiting), 1, 28)
        rows = [self._run("r2", "parked", 200), self._run("r1", "tool", 64)]
        for place, run_id in enumerate(self.waiting):
            behind = ["r1", *self.waiting[:place]]
            rows.append(self._run(run_id, "queued", 30 - int(run_id[1]), behind))
        return {"paused": False, "lanes": lanes, "runs": rows[:2] + rows[:1:-1]}

    def _run(
        self, run_id: str, state: str, seconds: int, behind: list[str] | None = None
    ) -> dict[str, object]:
        return {"runId": run_id, "sessionKey": WORDS[run_id][0], "lane": "main", "state": state,
                "sinceMs": NOW - seconds * 1000, "parentId": None,
                "waitingBehind": behind or []}  # fmt: skip

    def install(self, client: FakeClient) -> FakeClient:
        client.answers["lanes.status"] = lambda params: self.payload()
        for name, work in (("configure", self._configure), ("drop", self._drop),
                           ("move", self._move)):  # fmt: skip
            client.answers[f"lanes.{name}"] = work
        return client

    def tell(self, client: FakeClient) -> None:
        """The messages, as the trace had them, and how things stand."""
        for run_id, (key, words) in WORDS.items():
            script = Script(run_id, key, NOW - 60_000)
            if run_id.startswith("r"):
                client.trace(*script.opening(words))
            else:
                client.trace(script("run.queued", message=words, source="console", lane="main",
                                    waitingBehind=["r1"]))  # fmt: skip
        client.emit("lanes", self.payload())

    def _configure(self, params: Mapping[str, object]) -> Mapping[str, object]:
        name, width = str(params["lane"]), params["width"]
        assert width is None or isinstance(width, int)
        self.widths[name] = 4 if width is None else width
        return {"ok": True, "lane": name, "width": self.widths[name]}

    def _drop(self, params: Mapping[str, object]) -> Mapping[str, object]:
        self.waiting.remove(str(params["runId"]))
        return {"ok": True, **params}

    def _move(self, params: Mapping[str, object]) -> Mapping[str, object]:
        run_id, place = str(params["runId"]), params["position"]
        assert isinstance(place, int)
        self.waiting.remove(run_id)
        self.waiting.insert(place, run_id)
        return {"ok": True, **params}
