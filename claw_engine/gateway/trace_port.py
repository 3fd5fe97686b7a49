"""What the gateway needs of the trace store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class TracePort(Protocol):
    """The trace store; answers as docs/trace.md has them. All raise ClawError."""

    async def runs(
        self, session_key: str | None, limit: int, before: int | None
    ) -> Mapping[str, object]: ...

    async def run(self, run_id: str) -> Mapping[str, object]: ...

    async def calls(
        self, session_key: str | None, run_id: str | None, limit: int, before: int | None
    ) -> Mapping[str, object]: ...

    async def call(self, call_id: str | None, session_key: str | None) -> Mapping[str, object]: ...

    async def part(
        self, call_id: str, part_id: str, offset: int, limit: int
    ) -> Mapping[str, object]: ...

    async def compare(self, a: str, b: str, most: int) -> Mapping[str, object]: ...

    async def search(self, call_id: str, text: str, most: int) -> Mapping[str, object]: ...
