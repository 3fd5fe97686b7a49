"""One call's spending, and sums of them. Tokens; money in the currency of the configured prices.

`input` leaves out what the provider read from its cache (`cache_read`) or wrote to it.
"""

from __future__ import annotations

from msgspec import Struct

from claw_engine.messages import Usage


class Spent(Struct, frozen=True):
    """What one call cost. `cost` None: the price is not known. `measured`: the provider counted."""

    at_ms: int
    session_key: str
    session_id: str
    agent_id: str
    run_id: str
    call_id: str
    model: str
    cause: str
    status: str
    usage: Usage
    measured: bool
    cost: float | None

    def to_json(self) -> dict[str, object]:
        """As the trace tells it beside a call's end."""
        usage = self.usage
        return {
            "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
            "cacheWrite": usage.cache_write, "total": usage.total,
            "basis": "measured" if self.measured else "estimated", "cost": self.cost,
        }  # fmt: skip


class Sums(Struct):
    """Sums over calls: `estimated` of them were not counted by their provider, the price of
    `unpriced` is not known."""

    calls: int = 0
    estimated: int = 0
    unpriced: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0
    cost: float = 0.0

    def add(self, spent: Spent) -> None:
        """Count one more call."""
        usage = spent.usage
        self.calls += 1
        self.estimated += not spent.measured
        self.unpriced += spent.cost is None
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.total += usage.total
        self.cost += spent.cost or 0.0

    def merge(self, other: Sums) -> None:
        """Add another sum."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_json(self) -> dict[str, object]:
        """OpenClaw's names and ours: `basis` is measured only if all of it is."""
        return {
            "input": self.input, "output": self.output, "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write, "totalTokens": self.total,
            "totalCost": round(self.cost, 9), "missingCostEntries": self.unpriced,
            "calls": self.calls, "estimatedCalls": self.estimated,
            "basis": "estimated" if self.estimated else "measured",
        }  # fmt: skip
