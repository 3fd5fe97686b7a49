"""Answers about what was spent: by day, session, model, cause; and where the budgets stand.

Everything is summed on the ledger's thread. Field names are OpenClaw's where it has them (gateway
digest §1.11); what we do not keep (latency, counts of messages and tools) is left out, not zero.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from claw_engine.usage import schema
from claw_engine.usage.days import Day, chosen, zone
from claw_engine.usage.meter import Caller, Meter
from claw_engine.usage.records import Sums
from claw_engine.usage.schema import Cell

if TYPE_CHECKING:
    import sqlite3

Json: TypeAlias = dict[str, object]
By: TypeAlias = Literal["session", "model", "cause", "agent", "day"]

POINTS = 200
"""Points of a session's course (gateway digest §1.11)."""


class UsageDesk:
    """Reads through the meter's ledger. All methods raise what `Ledger.read` raises."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    async def daily(self, days: Sequence[Day]) -> Json:
        """`usage.cost`: each day and all of them."""
        edges = _edges(days)
        found = await self._meter.ledger.read(lambda c: schema.daily(c, edges))
        return {
            "updatedAt": self._now(),
            "days": len(days),
            "daily": [
                {"date": day.name, **sums.to_json()} for day, sums in zip(days, found, strict=True)
            ],
            "totals": _all(found).to_json(),
        }

    async def totals(self, days: Sequence[Day], by: By, session: str | None) -> Json:
        """Sums of these days by one thing, the largest first; days in their order."""
        cells = await self._cells(days, session)
        groups: dict[str, Sums] = {day.name: Sums() for day in days} if by == "day" else {}
        edges = _edges(days)
        for cell in cells:
            name = _day(days, edges, cell) if by == "day" else str(getattr(cell, by))
            groups.setdefault(name, Sums()).merge(cell.sums)
        rows = list(groups.items())
        if by != "day":
            rows.sort(key=lambda row: (-row[1].total, row[0]))
        return {
            "updatedAt": self._now(), "startDate": days[0].name, "endDate": days[-1].name,
            "by": by, "rows": [{"name": name, **sums.to_json()} for name, sums in rows],
            "totals": _all(groups.values()).to_json(),
        }  # fmt: skip

    async def sessions(self, days: Sequence[Day], session: str | None) -> Json:
        """`sessions.usage` without what only the session store knows of each."""
        cells = await self._cells(days, session)
        edges = _edges(days)
        keys: dict[str, list[Cell]] = {}
        for cell in cells:
            keys.setdefault(cell.session, []).append(cell)
        rows = [(key, _all(c.sums for c in mine), mine) for key, mine in keys.items()]
        rows.sort(key=lambda row: (-row[1].total, row[0]))
        return {
            "updatedAt": self._now(), "startDate": days[0].name, "endDate": days[-1].name,
            "sessions": [
                {
                    "key": key,
                    "sessionId": mine[-1].session_id or None,
                    "agentId": mine[-1].agent,
                    "usage": {
                        **sums.to_json(),
                        "dailyBreakdown": _rows(_grouped(mine, days, edges, "day"), "date"),
                        "modelUsage": _rows(_grouped(mine, days, edges, "model"), "model"),
                        "causeUsage": _rows(_grouped(mine, days, edges, "cause"), "cause"),
                    },
                }
                for key, sums, mine in rows
            ],
            "totals": _all(c.sums for c in cells).to_json(),
            "aggregates": {
                "byModel": _rows(_grouped(cells, days, edges, "model"), "model"),
                "byProvider": _rows(_grouped(cells, days, edges, "provider"), "provider"),
                "byAgent": _rows(_grouped(cells, days, edges, "agent"), "agentId"),
                "byCause": _rows(_grouped(cells, days, edges, "cause"), "cause"),
                "daily": _rows(_grouped(cells, days, edges, "day"), "date"),
            },
        }  # fmt: skip

    async def course(self, session_id: str) -> Json:
        """`sessions.usage.timeseries`: a session's calls, with what they come to."""
        points = await self._meter.ledger.read(lambda c: schema.points(c, session_id))
        size = -(-len(points) // POINTS) or 1
        out: list[Json] = []
        tokens, cost = 0, 0.0
        for at in range(0, len(points), size):
            some = points[at : at + size]
            sums = _all(point.sums for point in some)
            tokens, cost = tokens + sums.total, cost + sums.cost
            out.append({
                "timestamp": some[-1].at_ms, "input": sums.input, "output": sums.output,
                "cacheRead": sums.cache_read, "cacheWrite": sums.cache_write,
                "totalTokens": sums.total, "cost": round(sums.cost, 9),
                "cumulativeTokens": tokens, "cumulativeCost": round(cost, 9),
            })  # fmt: skip
        return {"sessionId": session_id, "points": out}

    async def session(self, session_id: str) -> Sums:
        """What a session's present life has spent."""
        return await self._meter.ledger.read(lambda c: schema.of_session(c, session_id))

    async def span(self, days: Sequence[Day]) -> Sums:
        """What these days have spent."""
        first, last = days[0].start, days[-1].end
        return await self._meter.ledger.read(lambda c: schema.between(c, first, last))

    async def budgets(self, session_key: str, session_id: str) -> list[Json]:
        """Where the budgets of a session and of today stand; empty when there are none."""
        if not self._meter.bound:
            return []
        await self._meter.ready(session_id)
        caller = Caller(session_key, session_id, "", "", "", None)
        return [
            {**standing.to_json(), "setting": standing.limit.setting, "text": standing.stands()}
            for standing in self._meter.standings(caller)
            if session_id or standing.limit.scope == "day"
        ]

    def days(
        self, first: str | None = None, last: str | None = None, days: int | None = None,
        where: str | None = None,
    ) -> list[Day]:  # fmt: skip
        """The days of a question, in the person's time zone or in `where`. Raises ValueError."""
        place = self._meter.where if where is None else zone(where)
        return chosen(self._now(), place, first, last, days)

    @property
    def ratios(self) -> Mapping[str, float]:
        """By what the estimates for each measured model are multiplied."""
        return self._meter.calibration.ratios

    def _now(self) -> int:
        return self._meter.clock.now_ms()

    async def _cells(self, days: Sequence[Day], session: str | None) -> list[Cell]:
        first, last = days[0].start, days[-1].end

        def read(connection: sqlite3.Connection) -> list[Cell]:
            return schema.cells(connection, first, last, session)

        return await self._meter.ledger.read(read)


def _edges(days: Sequence[Day]) -> list[int]:
    return [*(day.start for day in days), days[-1].end]


def _all(sums: Iterable[Sums]) -> Sums:
    whole = Sums()
    for one in sums:
        whole.merge(one)
    return whole


def _day(days: Sequence[Day], edges: Sequence[int], cell: Cell) -> str:
    return days[min(len(days), bisect_right(edges, cell.at_ms)) - 1].name


def _grouped(
    cells: Sequence[Cell], days: Sequence[Day], edges: Sequence[int], by: str
) -> dict[str, Sums]:
    found: dict[str, Sums] = {}
    for cell in cells:
        if by == "day":
            name = _day(days, edges, cell)
        elif by == "provider":
            name = cell.model.partition("/")[0]
        else:
            name = str(getattr(cell, by))
        found.setdefault(name, Sums()).merge(cell.sums)
    return found


def _rows(groups: Mapping[str, Sums], title: str) -> list[Json]:
    """Days in their order, others by size."""
    rows = sorted(groups.items(), key=lambda row: row[0] if title == "date" else "")
    if title != "date":
        rows.sort(key=lambda row: (-row[1].total, row[0]))
    return [{title: name, **sums.to_json()} for name, sums in rows]
